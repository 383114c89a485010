"""The op as an application handles it: a ReplicationOp, and the record that held it.

Rows are wrapped when they are looked at: most of an op's cost is not paid by a handler
that needs one column.
"""

from datetime import UTC, datetime
from typing import NamedTuple

from consumer.values import Values
from walstream.lsn import Lsn, show
from walstream.op import Kind, ReplicationOp, Table


class ConsumerRecord(NamedTuple):
    """A record of Kafka, as it was fetched."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 0  # of an op: when its transaction committed
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def timestamp(self) -> datetime:
        return datetime.fromtimestamp(self.timestamp_ms / 1000, UTC)

    def __repr__(self) -> str:
        """Return where it lies; its bytes belong in no log."""
        return f"<{self.topic}[{self.partition}] offset {self.offset}>"


class Op:
    """One change of one row, or the truncation of a table.

    `(lsn, seq_id)` names it, the same in every replay. `new` and `old` are the rows;
    the one that an op does not have is empty, and false in an `if`.
    """

    __slots__ = ("_new", "_old", "_op", "record")

    record: ConsumerRecord

    def __init__(self, op: ReplicationOp, record: ConsumerRecord) -> None:
        self._op = op
        self.record = record
        self._new: Values | None = None
        self._old: Values | None = None

    @classmethod
    def of(cls, op: ReplicationOp, record: ConsumerRecord) -> "Op":
        """Wrap what `walstream.formats.op.decode` made of a record's value."""
        return cls(op, record)

    @property
    def kind(self) -> Kind:
        return self._op.kind

    @property
    def table(self) -> Table:
        """The table: `schema`, `name`, `full_name` and `columns`."""
        return self._op.table

    @property
    def lsn(self) -> Lsn:
        return self._op.lsn

    @property
    def seq_id(self) -> int:
        return self._op.seq_id

    @property
    def snapshot(self) -> bool:
        """Return a backfilled row, which was there before the stream began."""
        return self._op.snapshot

    @property
    def partitions(self) -> int:
        """How many partitions a Truncate went to; 0 for any other op."""
        return self._op.partitions

    @property
    def new(self) -> Values:
        """The row as it is now: of Insert and Update."""
        if self._new is None:
            self._new = Values(self._op.table, self._op.new)
        return self._new

    @property
    def old(self) -> Values:
        """The row as it was: of Delete, and of Update where it was sent."""
        if self._old is None:
            self._old = Values(self._op.table, self._op.old)
        return self._old

    def __repr__(self) -> str:
        """Return which op it is; its values belong in no log."""
        return (
            f"<{self.kind.value} {self.table.full_name}"
            f" {show(self.lsn)} {self.seq_id} in {self.record!r}>"
        )
