"""What is told of a transaction: its beginning, and at its commit its counts."""

import json
from types import SimpleNamespace
from typing import Any

from walstream.formats.debezium import DebeziumOptions
from walstream.kafka.transaction_topic import TransactionTopic, transaction_form
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.ledger import Ledger, Transaction
from walstream.records.encoding import TransactionInfo
from walstream.records.producer_record import ProducerRecord

T, U = Table("public", "t", ("id",)), Table("public", "u", ("id",))


def op_of(table: Table, *, snapshot: bool = False) -> ReplicationOp:
    return ReplicationOp(Kind.INSERT, table, 100, 0, new=["1"], snapshot=snapshot)


class Told:
    """A topic of transactions, and the records that were put."""

    def __init__(self, *, debezium: bool = False) -> None:
        self.records: list[tuple[bytes | None, Any]] = []
        self.ledger = Ledger(0)
        info = TransactionInfo("info", debezium=debezium)
        form = transaction_form(info, DebeziumOptions("app") if debezium else None)
        self.topic = TransactionTopic("info", form, self._put, parking="large")

    def _put(
        self, record: ProducerRecord, op: ReplicationOp, transaction: Transaction
    ) -> None:
        assert record.topic == "info"
        assert op.commit_time == transaction.commit_time
        transaction.undelivered += 1
        self.records.append((record.key, json.loads(record.value or b"")))

    def count(self, transaction: Transaction, table: Table, rows: int = 1) -> None:
        op = ReplicationOp(Kind.INSERT, table, transaction.lsn, 0, new=["1"])
        op.xid, op.row_lsn, op.commit_time = 7, transaction.lsn - 10, 5
        self.topic.count(op, rows, transaction)


def test_one_record_at_the_commit() -> None:
    told = Told()
    transaction = told.ledger.begin(100, 5)
    told.count(transaction, T)
    told.count(transaction, U, 2)
    assert told.records == []
    told.topic.sent("b", 0, op_of(U), transaction)
    for partition in (2, 0, 2):
        told.topic.sent("a", partition, op_of(T), transaction)
    told.topic.sent("a", 1, op_of(T, snapshot=True), transaction)
    told.topic.sent("large", 1, op_of(T), transaction)
    told.topic.parked(op_of(T), transaction)
    told.topic.parked(op_of(T, snapshot=True), transaction)
    told.ledger.commit(120)
    counts = {
        "txinfo_rowcount": "3",
        "txinfo_rowcount_public.t": "1",
        "txinfo_rowcount_public.u": "2",
    }
    (record,) = told.records
    assert record == (
        b"100",
        {
            "_seqno": "100",
            "txinfo": counts,
            "lsn": 100,
            "end_lsn": 120,
            "xid": 7,
            "commit_time": 946_684_800_000_005,
            "rows": {"b": {"0": 1}, "a": {"0": 1, "2": 2}},
            "parked": 1,
        },
    )
    assert told.ledger.advance() == 0  # it waits for that record, too


def test_debeziums_begin_comes_with_the_first_row_and_end_with_the_commit() -> None:
    told = Told(debezium=True)
    transaction = told.ledger.begin(100, 5)
    told.count(transaction, T)
    told.count(transaction, T)
    (begin,) = told.records
    assert begin[1]["status"] == "BEGIN"
    assert begin[1]["id"] == "7:90"
    told.ledger.commit(120)
    key, end = told.records[1]
    assert key == b'{"id":"7:120"}'
    assert (end["status"], end["event_count"]) == ("END", 2)


def test_each_transaction_is_counted_anew_and_one_without_rows_not_told() -> None:
    told = Told()
    for lsn in (100, 200, 300):
        transaction = told.ledger.begin(lsn, 5)
        if lsn != 200:
            told.count(transaction, T)
        told.ledger.commit(lsn + 10)
    assert [value["txinfo"]["txinfo_rowcount"] for _, value in told.records] == [
        "1",
        "1",
    ]
    assert [key for key, _ in told.records] == [b"100", b"300"]


def test_a_transaction_is_told_behind_its_last_op_and_behind_those_before_it() -> None:
    told = Told()
    first, second = told.ledger.begin(100, 5), None
    told.count(first, T)
    told.topic.wait(first)
    told.ledger.commit(110)
    second = told.ledger.begin(200, 5)
    told.count(second, T)
    told.topic.sent("a", 0, op_of(T), second)
    told.ledger.commit(210)
    assert told.records == []
    assert (first.undelivered, second.undelivered) == (1, 1)  # the position waits
    told.topic.sent("a", 3, op_of(T), first)
    told.topic.arrive(first)
    assert [(key, value["rows"]) for key, value in told.records] == [
        (b"100", {"a": {"3": 1}}),
        (b"200", {"a": {"0": 1}}),
    ]
    assert (first.undelivered, second.undelivered) == (1, 1)  # of its record alone


def test_a_truncate_is_told_though_it_is_no_row() -> None:
    told = Told()
    transaction = told.ledger.begin(100, 5)
    told.count(transaction, T, 0)
    told.topic.sent("a", 0, op_of(T), transaction)
    told.topic.sent("a", 1, op_of(T), transaction)
    told.ledger.commit(110)
    ((_, value),) = told.records
    assert value["txinfo"] == {"txinfo_rowcount": "0"}
    assert value["rows"] == {"a": {"0": 1, "1": 1}}


def test_a_mark_holds_no_position() -> None:
    told, put = Told(), []
    mark = ProducerRecord(b"resolved", b"{}", "info"), op_of(T)
    marks: Any = SimpleNamespace(due=lambda: mark)
    form = transaction_form(TransactionInfo("info"), None)
    topic = TransactionTopic(
        "info", form, lambda *record: put.append(record), marks=marks
    )
    topic.tell_resolved()
    told.topic.tell_resolved()  # it has none
    ((record, _, transaction),) = put
    assert record.key == b"resolved"
    assert transaction.lsn == 0
