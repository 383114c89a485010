"""The format `op` behind the id of a JSON Schema, with values as Connect has them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import orjson

from walstream.formats.debezium.json_text import json_text
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.encodings.json_schema.record import JsonSchemaKey
from walstream.formats.encodings.json_schema.schema_text import json_schema
from walstream.formats.encodings.op.columns import known
from walstream.formats.encodings.op.records import OpRecords
from walstream.formats.encodings.subject import Framed
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import Row

_NULL: Final = "null"
_TRUNCATE: Final = Kind.TRUNCATE  # an enum's members are slow to look up


class JsonSchemaOp(OpRecords):
    """Encodes the ops of one table."""

    def __init__(self, table: Table, options: DebeziumOptions) -> None:
        super().__init__(table, replace(options, validated=True))
        self.schema_text = json_schema(self.schema)
        self._begin = (
            f'{{"table_name":{json_text(table.name)},"schema":{json_text(table.schema)}'
        )
        self._key: JsonSchemaKey | None = None  # with its schema: not made for each op

    def encode(self, op: ReplicationOp) -> bytes:
        """Write one op of this encoder's table."""
        columns, old, new = self._columns, op.old, op.new
        absent = texts = _NULL
        if op.absent:
            absent = _halves(columns.absent_of(old), columns.absent_of(new))
        if columns.have_texts(old, new):
            texts = _halves(columns.texts_of(old), columns.texts_of(new))
        partitions = str(op.partitions) if op.kind is _TRUNCATE else _NULL
        snapshot = "true" if op.snapshot else "false"
        written = (
            f'{self._begin},"lsn":{op.lsn},"seq_id":{op.seq_id},'
            f'"kind":"{op.kind.value}","old":{self._row(op, old)},'
            f'"new":{self._row(op, new)},"snapshot":{snapshot},'
            f'"absent":{absent},"texts":{texts},"partitions":{partitions}}}'
        )
        return self.head + written.encode()

    def _row(self, op: ReplicationOp, row: Row | None) -> str:
        if row is None:
            return _NULL
        if not op.absent:
            return self._columns.write(op, row)
        return self._columns.write(replace(op, absent=False), known(op, row))

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


def _halves(old: object, new: object) -> str:
    """Return both as an object, or null where neither has anything."""
    if not old and not new:
        return _NULL
    return orjson.dumps({"old": old or None, "new": new or None}).decode()
