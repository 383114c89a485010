"""Records of one schema in Avro, made of their JSON: those that are rare."""

from typing import Any

from walstream.formats.debezium.connect import Schema
from walstream.formats.encodings.avro import tree
from walstream.formats.encodings.avro.schema_text import avro_schema


class AvroDocument:
    """Writes records, or keys, of one schema."""

    def __init__(self, schema: Schema) -> None:
        """Raise ConfigError for the name of a field that Avro does not allow."""
        self.schema = schema
        self.schema_text = avro_schema(schema)
        self._write = tree.writer_of(schema)
        self.head = b""
        """What stands before each record: the id that a registry gives to the text."""

    def write(self, payload: bytes) -> bytes:
        """Write a record whose JSON this is; raise ValueError for another type's."""
        return self.head + tree.document(self.schema, payload)

    def write_value(self, value: Any) -> bytes:
        """Write a record of the schema, as JSON has it."""
        return self.head + self._write(value)
