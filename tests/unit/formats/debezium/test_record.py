"""What a record has beside its value."""

import json

from walstream.formats import ENCODERS, Context
from walstream.formats.debezium import DebeziumOptions, DebeziumRecords, SinkTurn
from walstream.op import Kind, ReplicationOp, Table

TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25))
INSERT = ReplicationOp(Kind.INSERT, TABLE, 9, 2, new=["1", "x"], row_lsn=8, xid=7)
DELETE = ReplicationOp(Kind.DELETE, TABLE, 9, 3, old=["1", "x"], row_lsn=8, xid=7)
SNAPSHOT = ReplicationOp(
    Kind.INSERT, TABLE, 9, 2, new=["1", "x"], row_lsn=9, snapshot=True
)


def records(
    *,
    unwrapped: bool = False,
    backfill: bool = False,
    transaction_block: bool = False,
    position_header: bool = True,
) -> DebeziumRecords:
    options = DebeziumOptions(
        "app",
        version="walstream 1",
        transaction_block=transaction_block,
        position_header=position_header,
    )
    return DebeziumRecords(
        TABLE, options, SinkTurn(), unwrapped=unwrapped, backfill=backfill
    )


def test_a_header_names_the_op_where_no_field_does() -> None:
    assert records().headers(INSERT) == [("walstream-position", b"9/2")]
    assert records(transaction_block=True).headers(INSERT) == []
    assert records(transaction_block=True).headers(SNAPSHOT) != []
    assert records(transaction_block=True, unwrapped=True).headers(INSERT) != []
    assert records(position_header=False).headers(INSERT) == []


def test_a_delete_has_a_tombstone_behind_it() -> None:
    first, tombstone = records().values(DELETE)
    assert first is not None
    assert json.loads(first)["op"] == "d"
    assert tombstone is None
    assert records(unwrapped=True).values(DELETE) == [None]


def test_rows_of_a_backfill_say_how_they_were_read() -> None:
    for backfill, told in ((True, "true"), (False, "incremental")):
        found = json.loads(records(backfill=backfill).encode(SNAPSHOT))
        assert (found["op"], found["source"]["snapshot"]) == ("r", told)


def test_a_key_is_of_the_columns_that_are_named() -> None:
    assert records().key([1]).render(INSERT) == b'{"v":"x"}'


def test_only_the_envelope_has_a_form_for_a_truncate() -> None:
    found = {
        name: ENCODERS[name](TABLE, Context()).truncates
        for name in ("debezium", "debezium_row")
    }
    assert found == {"debezium": True, "debezium_row": False}


def test_the_key_of_the_same_columns_is_made_once() -> None:
    made = records()
    assert made.key([0]) is made.key((0,))
    assert made.key([1]).render(INSERT) == b'{"v":"x"}'
    assert made.key([0]).render(INSERT) == b'{"id":1}'
