"""What is told of a transaction: its beginning, and at its commit its counts."""

import json
from typing import Any

from walstream.formats.debezium import DebeziumOptions
from walstream.kafka.transaction_topic import TransactionTopic, transaction_form
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.ledger import Ledger, Transaction
from walstream.records.encoding import TransactionInfo
from walstream.records.producer_record import ProducerRecord

T, U = Table("public", "t", ("id",)), Table("public", "u", ("id",))


class Told:
    """A topic of transactions, and the records that were put."""

    def __init__(self, *, debezium: bool = False) -> None:
        self.records: list[tuple[bytes | None, Any]] = []
        self.ledger = Ledger(0)
        info = TransactionInfo("info", debezium=debezium)
        form = transaction_form(info, DebeziumOptions("app") if debezium else None)
        self.topic = TransactionTopic("info", form, self._put)

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
    told.ledger.commit(120)
    counts = {
        "txinfo_rowcount": "3",
        "txinfo_rowcount_public.t": "1",
        "txinfo_rowcount_public.u": "2",
    }
    assert told.records == [(b"100", {"_seqno": "100", "txinfo": counts})]
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
