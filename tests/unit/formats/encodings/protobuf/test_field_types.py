"""Types of columns in words."""

import pytest

from tests.support.loads import registered_op
from walstream.formats.debezium import DebeziumOptions, EnvelopeEncoder, SinkTurn
from walstream.formats.encodings.protobuf import proto_shape
from walstream.formats.encodings.protobuf.field_types import proto_fields
from walstream.formats.encodings.protobuf.numbering import number_text
from walstream.formats.encodings.protobuf.op import ProtoOp
from walstream.op import Table

TABLE = Table("public", "t", ("id", "v", "a"), (0,), (23, 25, 1007))
ROW = {
    "id": ("int32", True),
    "v": ("optional string", True),
    "a": ("optional ArrayOfInt32", True),
}


def test_they_are_those_of_a_row_with_and_without_numbers() -> None:
    encoder = EnvelopeEncoder(TABLE, DebeziumOptions("app"), SinkTurn())
    shape = proto_shape(encoder.schema).text()
    assert proto_fields(shape) == ROW
    assert proto_fields(number_text(shape, [], keep=False)) == ROW
    row = proto_shape(encoder.columns.schema("a.Value")).text()
    assert proto_fields(row) == ROW


def test_another_text_has_none() -> None:
    with pytest.raises(ValueError, match="not a schema"):
        proto_fields("{}")


def test_fields_of_an_op_are_those_of_its_row() -> None:
    text = ProtoOp(registered_op.TABLE, registered_op.OPTIONS).schema_text
    assert proto_fields(text).keys() == {"id", "v", "n"}
