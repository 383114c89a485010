"""Records of a table in protobuf, as a sink takes them."""

import pytest

from walstream.formats.context import Context
from walstream.formats.debezium import DebeziumOptions, SinkTurn
from walstream.formats.encodings import encoder_in, parts_of
from walstream.formats.encodings.protobuf.numbering import number_text
from walstream.formats.encodings.protobuf.record import ProtoRecords, ProtoRowRecords
from walstream.formats.encodings.subject import SchemaId, set_heads
from walstream.op import Kind, ReplicationOp, Table

OPTIONS = DebeziumOptions("app", adjust="avro")
TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25))
CONTEXT = Context(debezium=OPTIONS, encoding="protobuf")


@pytest.mark.parametrize(
    ("name", "made", "truncates"),
    [("debezium", ProtoRecords, True), ("debezium_row", ProtoRowRecords, False)],
)
def test_a_format_has_its_records(name: str, made: type, *, truncates: bool) -> None:
    encoder = encoder_in("protobuf", name)(TABLE, CONTEXT)
    assert type(encoder) is made
    assert encoder.truncates is truncates


def test_key_and_value_are_written_by_what_the_registry_has() -> None:
    encoder = ProtoRecords(TABLE, OPTIONS, SinkTurn())
    parts = parts_of(encoder, "t", (0,), CONTEXT)
    assert [one.schema.subject for one in parts] == ["t-value", "t-key"]
    known = {
        one.schema.digest: SchemaId(7, number_text(one.schema.text, [], keep=False))
        for one in parts
    }
    set_heads(parts, known)
    set_heads(parts, known)  # as often as it is asked
    op = ReplicationOp(Kind.INSERT, TABLE, 70, 3, new=["1", "x"])
    head = b"\0\0\0\0\7\0"  # and which message it is: the first
    assert encoder.key((0,)).render(op) == head + b"\x08\1"
    assert encoder.encode(op).startswith(head + b"\x12\5\x08\1\x12\1x\x1a")


def test_no_text_is_put_into_it_later_and_a_header_names_each_op() -> None:
    """A reader without the schema sees no field."""
    records = ProtoRecords(TABLE, OPTIONS, SinkTurn())
    assert records.texts == frozenset()
    row = [None] * len(TABLE.columns)
    op = ReplicationOp(Kind.INSERT, TABLE, 70, 3, new=row)
    assert records.headers(op) == [("walstream-position", b"70/3")]
