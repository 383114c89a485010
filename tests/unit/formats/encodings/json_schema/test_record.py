"""Records of a table as JSON behind ids, as a sink takes them."""

import json
from dataclasses import replace

import pytest

from walstream.formats.context import Context
from walstream.formats.debezium import DebeziumOptions, DebeziumRecords, SinkTurn
from walstream.formats.debezium.connect_type import NO_NULL
from walstream.formats.encodings import encoder_in, parts_of
from walstream.formats.encodings.json_schema.record import (
    JsonSchemaRecords,
    JsonSchemaRowRecords,
)
from walstream.formats.encodings.wire import head
from walstream.formats.placeholder import StandIn
from walstream.op import ColumnFacts, Kind, ReplicationOp, Table, halves
from walstream.records.large_op import LargeRecord, plain
from walstream.records.large_op import made as large_of

OPTIONS = DebeziumOptions("app")
TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25))
CONTEXT = Context(debezium=OPTIONS, encoding="json_schema")
ROW = ["7", "x"]
OP = ReplicationOp(Kind.INSERT, TABLE, 70, 3, new=ROW, row_lsn=70, xid=1)


@pytest.mark.parametrize(
    ("name", "made", "truncates"),
    [
        ("debezium", JsonSchemaRecords, True),
        ("debezium_row", JsonSchemaRowRecords, False),
    ],
)
def test_a_format_has_its_records(name: str, made: type, *, truncates: bool) -> None:
    encoder = encoder_in("json_schema", name)(TABLE, CONTEXT)
    assert type(encoder) is made
    assert encoder.truncates is truncates


def test_key_and_value_have_a_schema_each_in_json_schema() -> None:
    encoder = encoder_in("json_schema", "debezium")(TABLE, CONTEXT)
    parts = [one.schema for one in parts_of(encoder, "t", (0,), CONTEXT)]
    assert [(one.subject, one.kind) for one in parts] == [
        ("t-value", "JSON"),
        ("t-key", "JSON"),
    ]
    assert json.loads(parts[1].text)["title"] == "app.public.t.Key"
    assert len(parts_of(encoder, "t", (), CONTEXT)) == 1


@pytest.mark.parametrize("unwrapped", [False, True])
@pytest.mark.parametrize("kind", [Kind.INSERT, Kind.UPDATE, Kind.DELETE])
def test_a_record_is_that_of_json_behind_its_id(kind: Kind, unwrapped: bool) -> None:
    old = ROW if kind is not Kind.INSERT else None
    new = ["8", "x"] if kind is not Kind.DELETE else None
    op = ReplicationOp(kind, TABLE, 70, 3, old=old, new=new, row_lsn=70, xid=1)
    records = JsonSchemaRecords(TABLE, OPTIONS, SinkTurn(), unwrapped=unwrapped)
    plain = DebeziumRecords(TABLE, OPTIONS, SinkTurn(), unwrapped=unwrapped)
    for number, (_, writer) in enumerate(records.framed((0,)), 1):
        writer.head = head(number)
    assert records.values(op) == [
        None if one is None else head(1) + one for one in plain.values(op)
    ]
    key, plain_key = records.key((0,)), plain.key((0,))
    rendered = plain_key.render(op)
    assert rendered is not None
    assert key.render(op) == head(2) + rendered
    if kind is Kind.UPDATE:  # headers have keys as Connect writes those
        assert key.change_headers(op) == plain_key.change_headers(op)
        first, _ = halves(op)
        assert key.render(first) == head(2) + b'{"id":7}'


def test_a_truncate_and_a_keyless_table_have_no_key() -> None:
    records = JsonSchemaRecords(TABLE, OPTIONS, SinkTurn())
    truncate = ReplicationOp(Kind.TRUNCATE, TABLE, 70, 3)
    assert records.key((0,)).render(truncate) is None
    assert records.key(()).render(OP) is None


def test_a_header_names_each_op_and_long_texts_are_put_in_later() -> None:
    """Who looks at a partition's end does not take the id off."""
    told = DebeziumOptions("app", transaction_block=True)
    records = JsonSchemaRecords(TABLE, told, SinkTurn())
    assert records.headers(OP) == [("walstream-position", b"70/3")]
    assert records.texts == {1}


def test_a_null_that_no_item_can_be_is_an_empty_value_and_counted() -> None:
    facts = (
        ColumnFacts(
            type_oid=3643,
            type_name="_tsvector",
            element_oid=3614,
            element_name="tsvector",
        ),
        ColumnFacts(
            type_oid=1009, type_name="_text", element_oid=25, element_name="text"
        ),
    )
    table = Table("public", "t", ("v", "w"), (), (3643, 1009), facts=facts)
    row = ["{NULL,'a'}", "{NULL,a}"]
    op = ReplicationOp(Kind.INSERT, table, 70, 3, new=row, row_lsn=70, xid=1)
    records = JsonSchemaRecords(table, OPTIONS, SinkTurn(), unwrapped=True)
    assert json.loads(records.encode(op)) == {"v": ["", "'a'"], "w": [None, "a"]}
    assert records.columns.lost == {("v", NO_NULL): 1}
    plain = DebeziumRecords(table, OPTIONS, SinkTurn(), unwrapped=True)
    assert json.loads(plain.encode(op))["v"] == [None, "'a'"]


def test_a_large_text_is_put_in_behind_the_id() -> None:
    text = StandIn(memoryview(('quote " ä \n' * 100).encode()))
    large = large_of(replace(OP, new=["7", text]))
    records = JsonSchemaRecords(TABLE, OPTIONS, SinkTurn())
    for _, writer in records.framed((0,)):
        writer.head = head(0x22222222)  # quotes
    record = LargeRecord(records.encode(large), large)
    assert record.value() == records.encode(plain(large))
    assert record.size() == len(record.value())
