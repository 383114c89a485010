"""A Kafka sink that also says how many rows of which table each transaction has.

In a topic of their own, or in each of a transaction's records, which then wait here for
the commit.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from walstream.config.librdkafka import ClientProperties
from walstream.formats.placeholder import weight
from walstream.formats.txinfo import RowCounts
from walstream.kafka.registry.schema_ids import SchemaIds
from walstream.kafka.sink import KafkaSink
from walstream.kafka.topics import Topics
from walstream.kafka.transaction_position import DeliveredTransactions
from walstream.lsn import Lsn
from walstream.op import Kind, ReplicationOp
from walstream.pipeline.ledger import Transaction
from walstream.records.encoding import SinkRules, TransactionInfo
from walstream.records.router import Router

_HELD_BYTES: Final = 64 << 20
_TRUNCATE: Final = Kind.TRUNCATE  # an enum's members are slow to look up


class TxinfoSink(KafkaSink):
    """Sink that counts rows; `Transaction.at_end` calls it at each end."""

    def __init__(  # noqa: PLR0913 - keywords
        self,
        rules: SinkRules,
        router: Router,
        topics: Topics,
        *,
        producer: ClientProperties,
        expected: Iterable[str] = (),
        transactions: DeliveredTransactions | None = None,
        ids: SchemaIds | None = None,
    ) -> None:
        """All is what a KafkaSink takes; `rules` name where it is said."""
        super().__init__(
            rules,
            router,
            topics,
            producer=producer,
            expected=expected,
            transactions=transactions,
            ids=ids,
        )
        self._info = rules.txinfo or TransactionInfo()
        self._whose: Transaction | None = None
        self._counts = RowCounts()
        self._held: list[ReplicationOp] | None = None  # None: they are sent at once
        self._held_bytes = 0

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        """Count an op of the stream; send it, or keep it until the commit."""
        if op.snapshot:
            return super().send(op, transaction)
        rows = self.rows_of(op)
        if self._told is not None and (rows or op.kind is _TRUNCATE):
            self._told.count(op, rows, transaction)
        if not rows or self._told is not None:
            return super().send(op, transaction)  # dropped, as a rule: it need not wait
        return self._keep(op, rows, transaction)

    def _keep(self, op: ReplicationOp, rows: int, transaction: Transaction) -> bool:
        """Keep an op until the commit, unless there are too many."""
        if transaction is not self._whose:
            self._whose = transaction
            self._counts = RowCounts()
            self._held = []
            self._held_bytes = 0
            transaction.at_end += (self._end,)
        self._counts.add(op.table, rows)
        if self._held is None:
            return super().send(op, transaction)
        self._held.append(op)
        self._held_bytes += weight(op.old) + weight(op.new)
        if self._counts.rows > self._info.max_rows or self._held_bytes > _HELD_BYTES:
            return self._let_go(transaction, b"")
        return True

    def _let_go(self, transaction: Transaction, info: bytes) -> bool:
        """Send what was kept, with what is said of all of it."""
        held, self._held = self._held or (), None
        room = True
        for op in held:
            room = super().send(replace(op, info=info) if info else op, transaction)
        return room

    def _end(self, transaction: Transaction, _end_lsn: Lsn) -> None:
        self._whose = None
        if self._held is not None:
            self._let_go(transaction, self._counts.render())
