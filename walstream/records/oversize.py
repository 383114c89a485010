"""A record that is too large for its topic: what stops at it, or is left of it.

What is left names the op, so that its row can be looked up, and holds no value of it
but the key.
"""

from dataclasses import dataclass

import orjson
import structlog

from walstream.errors import RecordRefused
from walstream.lsn import show
from walstream.op import ReplicationOp
from walstream.records.record_size import RECORD_OVERHEAD
from walstream.telemetry.fields import LSN, SINK, TABLE, TOPIC

_log = structlog.get_logger()


def widen(topic: str, advice: str) -> str:
    """Return what lets a topic take a larger record."""
    return advice or f"raise max.message.bytes of {topic!r}"


@dataclass(frozen=True, slots=True)
class TooLarge:
    """One of them."""

    op: ReplicationOp
    key: bytes
    size: int  # bytes, with what is around key and value
    topic: str
    limit: int
    advice: str = ""  # what takes a larger one; "": max.message.bytes

    def document(self) -> bytes:
        """Write what goes to the parking topic in its place."""
        op = self.op
        return orjson.dumps(
            {
                "table": op.table.full_name,
                "op": op.kind.value,
                "lsn": op.lsn,
                "seq_id": op.seq_id,
                "snapshot": op.snapshot,
                "key": self.key.decode(errors="replace"),
                "topic": self.topic,
                "size": self.size,
                "limit": self.limit,
            }
        )

    @property
    def size_parked(self) -> int:
        """Return the size of what is left of it, as a record: a key may be large."""
        return len(self.document()) + len(self.key) + RECORD_OVERHEAD

    def refusal(self) -> RecordRefused:
        """Make the error that stops at it."""
        op = self.op
        return RecordRefused(
            f"a record of table {op.table.full_name!r} at ({show(op.lsn)},"
            f" {op.seq_id}) has {self.size} bytes, topic {self.topic!r} takes"
            f" {self.limit}",
            hint=f"{widen(self.topic, self.advice)}; then: walstream run",
        )

    def tell(self, sink: str, parking: str) -> None:
        """Log where it is left."""
        op = self.op
        _log.error(
            "record is too large for its topic: its key and position are parked",
            **{
                SINK: sink,
                TABLE: op.table.full_name,
                LSN: show(op.lsn),
                TOPIC: parking,
            },
            seq_id=op.seq_id,
            size=self.size,
        )
