"""A Kafka sink that also says how many rows of which table each transaction has.

The counts are known at its commit only: they go behind its records to a topic of their
own, or into each of them, which then wait here for the commit. What a sink has no topic
for is not counted, and neither is a Truncate, which has no rows.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

from walstream.formats.placeholder import weight
from walstream.formats.txinfo import RowCounts
from walstream.kafka.sink import KafkaSink
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.ledger import Transaction
from walstream.records.encoding import TableEncoding
from walstream.records.key import KeyForm
from walstream.records.router import Route

_TABLE: Final = Table("", "txinfo", ("txinfo",))  # no table of any database
_HELD_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Informs:
    """Target of the row counts of a sink."""

    topic: str = ""  # "": in the records themselves
    max_rows: int = 10_000  # of a transaction whose records say it


class TxinfoSink(KafkaSink):
    """Sink that counts rows; `Transaction.at_end` calls it at each end."""

    def __init__(self, informs: Informs, *arguments: Any, **named: Any) -> None:
        """All but `informs` is what a KafkaSink takes."""
        super().__init__(*arguments, **named)
        key = KeyForm(lambda op: b"%d" % op.lsn, b"")
        aim = TableEncoding(Route(informs.topic, key), _whole_record, truncates=False)
        self.aim_at(_TABLE, aim)
        self._informs = informs
        self._whose: Transaction | None = None
        self._counts = RowCounts()
        self._held: list[ReplicationOp] | None = None  # None: they are sent at once
        self._held_bytes = 0

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        """Count an op of the stream; send it, or keep it until the commit."""
        if op.snapshot:
            return super().send(op, transaction)
        if transaction is not self._whose:
            self._begin(transaction)
        rows = self.rows_of(op)
        if not rows:
            return super().send(op, transaction)  # dropped, as a rule: it need not wait
        self._counts.add(op.table, rows)
        if self._held is None:
            return super().send(op, transaction)
        self._held.append(op)
        self._held_bytes += weight(op.old) + weight(op.new)
        if self._counts.rows > self._informs.max_rows or self._held_bytes > _HELD_BYTES:
            return self._let_go(transaction, b"")
        return True

    def _begin(self, transaction: Transaction) -> None:
        self._whose = transaction
        self._counts = RowCounts()
        self._held = None if self._informs.topic else []
        self._held_bytes = 0
        transaction.at_end += (self._end,)

    def _let_go(self, transaction: Transaction, info: bytes) -> bool:
        """Send what was kept, with what is said of all of it."""
        held, self._held = self._held or (), None
        room = True
        for op in held:
            room = super().send(replace(op, info=info) if info else op, transaction)
        return room

    def _end(self, transaction: Transaction) -> None:
        self._whose = None
        if self._held is not None:
            self._let_go(transaction, self._counts.render())
        elif self._informs.topic and self._counts.rows:
            info = ReplicationOp(
                Kind.INSERT,
                _TABLE,
                transaction.lsn,
                0,
                new=[self._counts.record(transaction.lsn).decode()],
                commit_time=transaction.commit_time,
            )
            super().send(info, transaction)


def _whole_record(op: ReplicationOp) -> bytes:
    (text,) = op.new or ("",)
    return str(text).encode()
