"""Key, value and headers of an outbox's records: as Kafka Connect's converters write.

A column has a value of Connect, as Debezium makes it with its default modes. `json` is
what JsonConverter writes of it, `text` what SimpleHeaderConverter does, and `raw` what
StringConverter does, or BinaryDataConverter of bytes.
"""

from binascii import a2b_base64
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

import orjson

from walstream.errors import ConfigError
from walstream.formats.debezium.calendar_text import micros
from walstream.formats.debezium.columns import TableColumns
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.connect_type import KAFKA
from walstream.formats.debezium.expanded_json import Unexpandable, expand
from walstream.formats.debezium.json_text import json_text
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.temporal import INFINITE_US
from walstream.op import ReplicationOp, Table
from walstream.records.handlers.outbox_settings import OutboxSettings

_BYTES: Final = Schema("bytes")
_BLANK: Final = "".join(map(chr, range(33)))  # what Java's trim takes away
_PAYLOAD: Final = "payload"


class OutboxForm:
    """Writer of the records of one table."""

    def __init__(self, table: Table, told: OutboxSettings) -> None:
        """Raise ConfigError for a column that has no form."""
        self._table = table
        self._told = told
        self._columns = TableColumns(table, DebeziumOptions(told.schema_prefix))
        left_out = sorted(told.columns.intersection(self._columns.left_out))
        if left_out and table.type_oids:
            raise ConfigError(
                f"outbox: column {left_out[0]!r} of table {table.full_name!r} has a"
                " type without a form",
                hint="name another column in the handler",
            )
        place = table.columns.index
        self._key = place(told.key)
        self._payload = place(told.payload)
        self._route = place(told.route) if told.route in table.columns else None
        self._headers = [
            ("id", place(told.id)),
            *((name, place(column)) for name, column in told.headers.items()),
        ]
        self._beside = [(name, place(one)) for name, one in told.envelope.items()]

    @property
    def lost(self) -> Mapping[tuple[str, str], int]:
        """Values that had no form so far, by column and reason."""
        return self._columns.lost

    def key(self, op: ReplicationOp) -> bytes | None:
        """Write the record's key; None: it has none."""
        index = self._key
        if self._told.key_form == "text":
            return self._raw(op, index)
        return self._document(self._schema(index), self._json(op, index))

    def headers(self, op: ReplicationOp) -> list[tuple[str, bytes | None]]:
        """Write the headers: of NULL one without a value."""
        return [(name, self._text(op, index)) for name, index in self._headers]

    def value(self, op: ReplicationOp) -> bytes | None:
        """Write the record's value."""
        told, index = self._told, self._payload
        if told.empty_payload == "tombstone" and self._is_empty(op):
            return None
        if told.payload_form == "raw":
            return self._raw(op, index)
        schema, value = self._expanded(op)
        if self._beside:
            fields = [(_PAYLOAD, schema, value)]
            fields += [
                (name, self._schema(one), self._json(op, one))
                for name, one in self._beside
            ]
            written = [f"{json_text(name)}:{value}" for name, _, value in fields]
            value = f"{{{','.join(written)}}}"
            schema = self._envelope(op, [(name, one) for name, one, _ in fields])
        return self._document(schema, value)

    def millis(self, op: ReplicationOp, index: int) -> int | None:
        """Return a column's timestamp in Unix milliseconds; None: it is infinite."""
        value = (op.new or ())[index]
        if not isinstance(value, str) or value in INFINITE_US:
            return None
        try:
            return micros(value) // 1000
        except ValueError:
            raise self._columns.refused(op, op.new or ()) from None

    def _is_empty(self, op: ReplicationOp) -> bool:
        value = (op.new or ())[self._payload]
        text = self._columns.types[self._payload].schema.type == "string"
        return value is None or (text and not str(value).strip(_BLANK))

    def _expanded(self, op: ReplicationOp) -> tuple[Schema, str]:
        """Return schema and JSON of the payload: as it is, where it does not expand."""
        schema = self._schema(self._payload)
        value = (op.new or ())[self._payload]
        wanted = self._told.payload_form == "expand" and schema.type == "string"
        if wanted and isinstance(value, str):
            try:
                return expand(
                    self._told.payload, value, nulls=self._told.nulls == "keep"
                )
            except Unexpandable:
                pass
        return schema, self._json(op, self._payload)

    def _envelope(
        self, op: ReplicationOp, fields: Sequence[tuple[str, Schema]]
    ) -> Schema:
        route = (op.new or ())[self._route] if self._route is not None else ""
        table = f"{self._table.schema}.{self._table.name}"
        prefix = f"{told}." if (told := self._told.schema_prefix) else ""
        name = f"{prefix}{table}.{route}.Value"
        return Schema("struct", name=name, fields=tuple(fields))

    def _schema(self, index: int) -> Schema:
        return self._columns.fields[index][1]

    def _json(self, op: ReplicationOp, index: int) -> str:
        value = (op.new or ())[index]
        if value is None:
            return "null"
        try:
            return self._columns.types[index].render(str(value))
        except ValueError:
            raise self._columns.refused(op, op.new or ()) from None

    def _text(self, op: ReplicationOp, index: int) -> bytes | None:
        value = (op.new or ())[index]
        if value is None:
            return None
        text, found = str(value), self._columns.types[index]
        if found.text:
            return text.encode()
        if found.schema.name == f"{KAFKA}Decimal":
            return str(Decimal(text)).encode()
        written = self._json(op, index)
        return orjson.loads(written).encode() if written[0] == '"' else written.encode()

    def _raw(self, op: ReplicationOp, index: int) -> bytes | None:
        text = self._text(op, index)
        if text is None or self._columns.types[index].schema != _BYTES:
            return text
        return a2b_base64(text)

    def _document(self, schema: Schema, value: str) -> bytes:
        if self._told.schemas:
            value = f'{{"schema":{schema.json()},"payload":{value}}}'
        return value.encode()
