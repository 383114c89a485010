"""Types of columns in words, of an Avro schema: more in `test_schema_difference`."""

from tests.support.loads import registered_op
from walstream.formats.debezium import DebeziumOptions, SinkTurn
from walstream.formats.encodings.avro import AvroEnvelope
from walstream.formats.encodings.avro.field_types import avro_fields
from walstream.formats.encodings.avro.op import AvroOp
from walstream.op import Table


def test_fields_are_those_of_the_row() -> None:
    table = Table("public", "t", ("id", "v"), (0,), (23, 25))
    options = DebeziumOptions("app", adjust="avro")
    text = AvroEnvelope(table, options, SinkTurn()).schema_text
    assert avro_fields(text) == {"id": ("int", False), "v": ("null or string", True)}


def test_fields_of_an_op_are_those_of_its_row() -> None:
    text = AvroOp(registered_op.TABLE, registered_op.OPTIONS).schema_text
    assert avro_fields(text).keys() == {"id", "v", "n"}
