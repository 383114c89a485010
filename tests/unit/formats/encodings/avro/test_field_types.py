"""Types of columns in words, of an Avro schema: more in `test_schema_difference`."""

from walstream.formats.debezium import DebeziumOptions, SinkTurn
from walstream.formats.encodings.avro import AvroEnvelope
from walstream.formats.encodings.avro.field_types import avro_fields
from walstream.op import Table


def test_fields_are_those_of_the_row() -> None:
    table = Table("public", "t", ("id", "v"), (0,), (23, 25))
    options = DebeziumOptions("app", adjust="avro")
    text = AvroEnvelope(table, options, SinkTurn()).schema_text
    assert avro_fields(text) == {"id": ("int", False), "v": ("null or string", True)}
