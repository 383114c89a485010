"""Records of a table in Avro, as a sink takes them."""

import pytest

from walstream.formats.context import Context
from walstream.formats.debezium import DebeziumOptions, SinkTurn
from walstream.formats.encodings import encoder_in, parts_of
from walstream.formats.encodings.avro.record import AvroRecords, AvroRowRecords
from walstream.op import Kind, ReplicationOp, Table

OPTIONS = DebeziumOptions("app", adjust="avro")
TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25))
CONTEXT = Context(debezium=OPTIONS, encoding="avro")


@pytest.mark.parametrize(
    ("name", "made", "truncates"),
    [("debezium", AvroRecords, True), ("debezium_row", AvroRowRecords, False)],
)
def test_a_format_has_its_records(name: str, made: type, *, truncates: bool) -> None:
    encoder = encoder_in("avro", name)(TABLE, CONTEXT)
    assert type(encoder) is made
    assert encoder.truncates is truncates


def test_key_and_value_have_a_schema_each() -> None:
    encoder = encoder_in("avro", "debezium")(TABLE, CONTEXT)
    parts = parts_of(encoder, "t", (0,), CONTEXT)
    assert [one.schema.subject for one in parts] == ["t-value", "t-key"]
    assert [one.schema.subject for one in parts_of(encoder, "t", (), CONTEXT)] == [
        "t-value"
    ]
    json = encoder_in("json", "debezium")(TABLE, CONTEXT)
    assert parts_of(json, "t", (0,), CONTEXT) == ()


def test_no_text_is_put_into_it_later_and_a_header_names_each_op() -> None:
    """A reader without the schema sees no field."""
    records = AvroRecords(TABLE, OPTIONS, SinkTurn())
    assert records.texts == frozenset()
    row = [None] * len(TABLE.columns)
    op = ReplicationOp(Kind.INSERT, TABLE, 70, 3, new=row)
    assert records.headers(op) == [("walstream-position", b"70/3")]
