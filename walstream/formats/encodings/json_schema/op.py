"""The format `op` behind the id of a JSON Schema, with values as Connect has them."""

from collections.abc import Sequence
from dataclasses import replace

from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.encodings.json_schema.record import JsonSchemaKey
from walstream.formats.encodings.json_schema.schema_text import json_schema
from walstream.formats.encodings.op.documents import OpDocuments
from walstream.formats.encodings.subject import Framed
from walstream.op import ReplicationOp, Table


class JsonSchemaOp(OpDocuments):
    """Encodes the ops of one table."""

    def __init__(self, table: Table, options: DebeziumOptions) -> None:
        super().__init__(table, replace(options, validated=True))
        self.schema_text = json_schema(self.schema)
        self._key: JsonSchemaKey | None = None  # with its schema: not made for each op

    def encode(self, op: ReplicationOp) -> bytes:
        """Write one op of this encoder's table."""
        return self.head + self.document(op)

    def key(self, indexes: Sequence[int]) -> JsonSchemaKey:
        """Return what writes the keys, of these columns: once made, the same."""
        wanted = tuple(indexes)
        if self._key is None or self._key.indexes != wanted:
            self._key = JsonSchemaKey(self._columns, self._options, wanted)
        return self._key

    def framed(self, key: Sequence[int]) -> list[tuple[bool, Framed]]:
        """Return what writes values and keys of these columns, keys with True."""
        parts: list[tuple[bool, Framed]] = [(False, self)]
        if key:
            parts.append((True, self.key(key)))
        return parts
