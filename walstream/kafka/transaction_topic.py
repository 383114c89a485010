"""Transactions told in a topic of their own: how many records of which table.

The counts are known at the commit only, and when each op found its topic. What a sink
has no topic for is not counted, nor what no op of the stream became: backfilled rows,
messages, records that a handler made.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from walstream.formats.txinfo import RowCounts, TxinfoRecords
from walstream.kafka.resolved_marks import ResolvedMarks
from walstream.kafka.topics import Topics
from walstream.kafka.transaction_position import LAST_SEQ_ID
from walstream.lsn import Lsn
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.ledger import Transaction, alone
from walstream.records.encoding import SinkRules, TransactionInfo
from walstream.records.producer_record import ProducerRecord, SchemaRecord

if TYPE_CHECKING:
    from walstream.formats.debezium import DebeziumOptions
    from walstream.formats.debezium.connect import Schema

Put = Callable[[ProducerRecord, ReplicationOp, Transaction], None]

_TABLE: Final = Table("", "txinfo", ("txinfo",))  # no table of any database


class TransactionForm(Protocol):
    """Writes key and value of a transaction's records."""

    @property
    def schemas(self) -> "tuple[Schema, Schema] | None":
        """Those of key and value; None: it is JSON, whatever the sink's encoding."""

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


def transaction_topic(
    rules: SinkRules, topics: Topics, put: Put, put_mark: Put
) -> "TransactionTopic | None":
    """Return that of a sink; None: it tells of none, or in its records."""
    info = rules.txinfo
    if info is None or not info.topic:
        return None
    marks = None
    if info.resolved_s:
        aside = {info.topic, rules.parking, *rules.reserved}
        marks = ResolvedMarks(
            rules.name, info.topic, info.resolved_s, topics, aside=aside
        )
    form = transaction_form(info, rules.context.debezium)
    return TransactionTopic(
        info.topic, form, put, put_mark=put_mark, parking=rules.parking, marks=marks
    )


class _Told:
    """One transaction, from its first op until its records are sent."""

    __slots__ = ("begin", "begun", "counts", "end_lsn", "waiting", "xid")

    def __init__(self) -> None:
        self.xid: int | None = None
        self.counts = RowCounts()
        self.begun = False
        self.begin: tuple[bytes, bytes] | None = None  # to be sent
        self.end_lsn: Lsn | None = None  # set by its commit
        self.waiting = 0  # ops whose topic is not known yet


class TransactionTopic:
    """The topic of one sink's transactions: its records stand in commit order."""

    def __init__(  # noqa: PLR0913 - keywords
        self,
        topic: str,
        records: TransactionForm,
        put: Put,
        *,
        put_mark: Put | None = None,
        parking: str = "",
        marks: ResolvedMarks | None = None,
    ) -> None:
        """Take `parking` for none of the topics whose records are counted.

        Marks, which are of no transaction, go by `put_mark`.
        """
        self._topic = topic
        self._records = records
        self._put = put
        self._put_mark = put_mark or put
        self._parking = parking
        self._marks = marks
        self._told: dict[Transaction, _Told] = {}  # in the order of their commits

    def count(self, op: ReplicationOp, rows: int, transaction: Transaction) -> None:
        """Meet an op of the stream, before its records are sent, and count its rows.

        A Truncate that is none of its table's rows has 0.
        """
        told = self._of(transaction)
        told.xid = op.xid
        if not rows:
            return
        told.counts.add(op.table, rows)
        if not told.begun:
            told.begun = True
            told.begin = self._records.begin(op.xid, op.row_lsn, op.commit_time)
            self._flush()

    def sent(
        self, topic: str, partition: int, op: ReplicationOp, transaction: Transaction
    ) -> None:
        """Count a record of an op that was met, as it goes out, or is there already."""
        told = self._told.get(transaction)
        if told is not None and topic != self._parking and not op.snapshot:
            told.counts.send(topic, partition)

    def parked(self, op: ReplicationOp, transaction: Transaction) -> None:
        """Count one that its topic does not take."""
        told = self._told.get(transaction)
        if told is not None and not op.snapshot:
            told.counts.parked += 1

    def wait(self, transaction: Transaction) -> bool:
        """Note that an op waits for its topic: its transaction is told after it.

        Return whether it does; False: none of it was met, and this one does not count.
        """
        told = self._told.get(transaction)
        if told is None:
            return False
        told.waiting += 1
        return True

    def arrive(self, transaction: Transaction) -> None:
        """Note that an op was sent for which the transaction waits."""
        told = self._told.get(transaction)
        if told is not None:
            told.waiting -= 1
            self._flush()

    def resolve(self, lsn: Lsn) -> None:
        """Note that each op of a transaction below `lsn` was delivered."""
        if self._marks is not None:
            self._marks.resolve(lsn)

    def tell_resolved(self) -> None:
        """Send a mark, if one is due."""
        mark = self._marks.due() if self._marks is not None else None
        if mark is not None:
            self._put_mark(*mark, alone(0))  # no position waits for it

    def _of(self, transaction: Transaction) -> _Told:
        told = self._told.get(transaction)
        if told is None:
            told = self._told[transaction] = _Told()
            transaction.at_end += (self._end,)
        return told

    def _end(self, transaction: Transaction, end_lsn: Lsn) -> None:
        self._told[transaction].end_lsn = end_lsn
        transaction.undelivered += 1  # until its record is sent, which may wait
        self._flush()

    def _flush(self) -> None:
        """Send what is due, in order: nothing of a transaction before those ahead."""
        while self._told:
            transaction, told = next(iter(self._told.items()))
            begin, told.begin = told.begin, None
            if begin is not None:
                self._send(begin, transaction, 0)
            end_lsn = told.end_lsn
            if end_lsn is None or told.waiting:
                return
            del self._told[transaction]
            if not told.counts.empty:
                lsns, time = (transaction.lsn, end_lsn), transaction.commit_time
                end = self._records.end(told.xid, lsns, time, told.counts)
                self._send(end, transaction, LAST_SEQ_ID)
            transaction.undelivered -= 1

    def _send(
        self, record: tuple[bytes, bytes], transaction: Transaction, seq_id: int
    ) -> None:
        """Send one before, or behind, all ops of its transaction."""
        key, value = record
        op = ReplicationOp(
            Kind.INSERT,
            _TABLE,
            transaction.lsn,
            seq_id,
            commit_time=transaction.commit_time,
        )
        made = ProducerRecord(key, value, self._topic)
        if (schemas := self._records.schemas) is not None:
            made = SchemaRecord(key, value, self._topic, schemas=schemas)
        self._put(made, op, transaction)
