"""Records of one schema in JSON, behind its id: those that are rare."""

from typing import Any

import orjson

from walstream.formats.debezium.connect import Schema
from walstream.formats.encodings.json_schema.schema_text import json_schema


class JsonSchemaDocument:
    """Writes records, or keys, of one schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.schema_text = json_schema(schema)
        self.head = b""
        """What stands before each record: the id that a registry gives to the text."""

    def write(self, payload: bytes) -> bytes:
        """Write a record whose JSON this is."""
        return self.head + payload

    def write_value(self, value: Any) -> bytes:
        """Write a record of the schema, as JSON has it."""
        return self.head + orjson.dumps(value)
