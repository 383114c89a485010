"""What is said of a transaction is that of docs/formats.md."""

import json

from tests.support.oracles.vectors import TXINFO
from walstream.formats.context import Context
from walstream.formats.tungsten import TungstenEncoder
from walstream.formats.txinfo import RowCounts, TxinfoRecords, resolved_record
from walstream.op import Kind, ReplicationOp, Table

MSG = Table("msg", "msg", ("id",))
SUB = Table("msg", "msgsub", ("id",))


def counted() -> RowCounts:
    counts = RowCounts()
    counts.add(MSG)
    counts.add(SUB)
    counts.add(Table("msg", "msgsub", ("id", "later")))
    return counts


def test_a_transaction_has_a_record_of_its_own() -> None:
    records = TxinfoRecords()
    assert records.begin(7, 1, 0) is None
    counts = counted()
    counts.send("msg.msg", 3)
    counts.send("msg.msg", 3)
    counts.send("msg.msg", 0)
    assert records.end(7, (4865, 4900), 5, counts) == (b"4865", TXINFO)
    assert counts.rows == 3


def test_a_mark_has_the_offsets_of_each_partition() -> None:
    assert resolved_record(4900, 1_764_000_000_000_000, {"t": [7, 0]}) == (
        b"resolved",
        b'{"resolved":4900,"time":1764000000000000,"next":{"t":[7,0]}}',
    )


def test_each_record_of_a_transaction_may_carry_it() -> None:
    op = ReplicationOp(Kind.INSERT, MSG, 4865, 0, new=["1"], info=counted().render())
    value = TungstenEncoder(MSG, Context()).encode(op)
    assert value.endswith(
        b'"_optype":"INSERT","txinfo":{"txinfo_rowcount":"3",'
        b'"txinfo_rowcount_msg.msg":"1","txinfo_rowcount_msg.msgsub":"2"}}'
    )
    assert json.loads(value)["txinfo"] == json.loads(TXINFO)["txinfo"]


def test_rows_may_be_counted_in_bulk_and_names_are_escaped() -> None:
    counts = RowCounts()
    counts.add(Table('s"', "t", ()), 10_000)
    assert counts.render() == (
        b'{"txinfo_rowcount":"10000","txinfo_rowcount_s\\".t":"10000"}'
    )


def test_a_transaction_without_rows_counts_none() -> None:
    assert RowCounts().render() == b'{"txinfo_rowcount":"0"}'
