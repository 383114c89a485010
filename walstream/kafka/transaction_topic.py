"""Transactions told in a topic of their own: how many records of which table.

The counts are known at the commit only. What a sink has no topic for is not counted.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from walstream.formats.txinfo import RowCounts, TxinfoRecords
from walstream.lsn import Lsn
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.ledger import Transaction
from walstream.records.encoding import TransactionInfo
from walstream.records.producer_record import ProducerRecord

if TYPE_CHECKING:
    from walstream.formats.debezium import DebeziumOptions

_TABLE: Final = Table("", "txinfo", ("txinfo",))  # no table of any database


class TransactionForm(Protocol):
    """Writes key and value of a transaction's records."""

    def begin(
        self, xid: int | None, first: Lsn, commit_time: int, /
    ) -> tuple[bytes, bytes] | None:
        """Write the record ahead of the first row, of LSN `first`; None: there is none.

        `commit_time` is in microseconds since 2000-01-01 UTC.
        """

    def end(
        self,
        xid: int | None,
        lsns: tuple[Lsn, Lsn],
        commit_time: int,
        counts: RowCounts,
        /,
    ) -> tuple[bytes, bytes]:
        """Write the record behind the last row.

        `lsns` are those of the commit record, and of the byte behind it.
        """


def transaction_form(
    info: TransactionInfo, options: "DebeziumOptions | None"
) -> TransactionForm:
    """Return what writes the records of a sink; `options` are of its own format."""
    if not info.debezium:
        return TxinfoRecords()
    from walstream.formats.debezium import (  # noqa: PLC0415 - few need it
        DebeziumOptions,
        TransactionRecords,
    )

    return TransactionRecords(options or DebeziumOptions(""))


class TransactionTopic:
    """The topic of one sink's transactions."""

    def __init__(
        self,
        topic: str,
        records: TransactionForm,
        put: Callable[[ProducerRecord, ReplicationOp, Transaction], None],
    ) -> None:
        self._topic = topic
        self._records = records
        self._put = put
        self._whose: Transaction | None = None
        self._xid: int | None = None
        self._counts = RowCounts()

    def count(self, op: ReplicationOp, rows: int, transaction: Transaction) -> None:
        """Count an op's records, before they are sent."""
        if transaction is not self._whose:
            self._whose = transaction
            self._xid = op.xid
            self._counts = RowCounts()
            transaction.at_end += (self._end,)
            begin = self._records.begin(op.xid, op.row_lsn, op.commit_time)
            if begin is not None:
                self._send(begin, transaction)
        self._counts.add(op.table, rows)

    def _end(self, transaction: Transaction, end_lsn: Lsn) -> None:
        self._whose = None
        lsns, time = (transaction.lsn, end_lsn), transaction.commit_time
        self._send(self._records.end(self._xid, lsns, time, self._counts), transaction)

    def _send(self, record: tuple[bytes, bytes], transaction: Transaction) -> None:
        key, value = record
        op = ReplicationOp(
            Kind.INSERT,
            _TABLE,
            transaction.lsn,
            0,
            commit_time=transaction.commit_time,
        )
        self._put(ProducerRecord(key, value, self._topic), op, transaction)
