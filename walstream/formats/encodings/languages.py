"""Encodings whose schemas a registry has, and what writes each: the one list of them.

What is needed is imported when it is: few processes write any, and none all. What reads
them is in `readers`, which consumers have without this.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from walstream.errors import ConfigError
from walstream.formats.encodings.readers import AVRO, JSON_SCHEMA, PROTOBUF

if TYPE_CHECKING:
    from walstream.formats import Encoder
    from walstream.formats.debezium.connect import Schema
    from walstream.formats.debezium.options import DebeziumOptions
    from walstream.formats.debezium.record import DebeziumRecords
    from walstream.op import Table

Fields = Mapping[str, tuple[str, bool]]
"""Type of each column of a row, for people, and whether it has a default."""


class NumberText(Protocol):
    """Function that numbers the fields of a schema."""

    def __call__(self, text: str, history: Sequence[str], *, keep: bool) -> str:
        """Return a text with numbers, by those of its versions, the latest last.

        `keep`: fields that are gone stay. Raises a WalstreamError for a latest version
        that cannot be read.
        """


class SchemaDocument(Protocol):
    """Writes records, or keys, of one schema, of their JSON: those that are rare."""

    schema: "Schema"
    schema_text: str
    head: bytes

    def write(self, payload: bytes) -> bytes:
        """Write a record whose JSON this is; raise ValueError for another type's."""

    def write_value(self, value: Any) -> bytes:
        """Write a record of the schema, as JSON has it."""


@dataclass(frozen=True, slots=True)
class Language:
    """Parts of an encoding."""

    kind: str  # the registry's word for it: schemaType
    records: "Callable[[], tuple[type[DebeziumRecords], type[DebeziumRecords]]]"
    """Encoders of the formats `debezium` and `debezium_row`."""
    document: "Callable[[Schema], SchemaDocument]"
    fields: Callable[[str], Fields]
    """Raises AttributeError, KeyError, TypeError, ValueError or WalstreamError for
    another text."""
    ending: int
    """Bytes at an envelope's end that tell when it was made."""
    number: "NumberText | None" = None
    """Makes the text that is registered, where numbers of fields lack in it."""
    op: "Callable[[Table, DebeziumOptions], Encoder] | None" = None
    """What makes the encoder of the format `op`; None: it has none."""


# ruff: noqa: PLC0415 - few processes need any of them


def _avro_records() -> "tuple[type[DebeziumRecords], type[DebeziumRecords]]":
    from walstream.formats.encodings.avro.record import AvroRecords, AvroRowRecords

    return AvroRecords, AvroRowRecords


def _avro_op(table: "Table", options: "DebeziumOptions") -> "Encoder":
    from walstream.formats.encodings.avro.op import AvroOp

    return AvroOp(table, options)


def _avro_document(schema: "Schema") -> SchemaDocument:
    from walstream.formats.encodings.avro.document import AvroDocument

    return AvroDocument(schema)


def _avro_fields(text: str) -> Fields:
    from walstream.formats.encodings.avro.field_types import avro_fields

    return avro_fields(text)


def _json_records() -> "tuple[type[DebeziumRecords], type[DebeziumRecords]]":
    from walstream.formats.encodings.json_schema.record import (
        JsonSchemaRecords,
        JsonSchemaRowRecords,
    )

    return JsonSchemaRecords, JsonSchemaRowRecords


def _json_op(table: "Table", options: "DebeziumOptions") -> "Encoder":
    from walstream.formats.encodings.json_schema.op import JsonSchemaOp

    return JsonSchemaOp(table, options)


def _json_document(schema: "Schema") -> SchemaDocument:
    from walstream.formats.encodings.json_schema.document import JsonSchemaDocument

    return JsonSchemaDocument(schema)


def _json_fields(text: str) -> Fields:
    from walstream.formats.encodings.json_schema.field_types import json_schema_fields

    return json_schema_fields(text)


def _proto_records() -> "tuple[type[DebeziumRecords], type[DebeziumRecords]]":
    from walstream.formats.encodings.protobuf.record import (
        ProtoRecords,
        ProtoRowRecords,
    )

    return ProtoRecords, ProtoRowRecords


def _proto_op(table: "Table", options: "DebeziumOptions") -> "Encoder":
    from walstream.formats.encodings.protobuf.op import ProtoOp

    return ProtoOp(table, options)


def _proto_document(schema: "Schema") -> SchemaDocument:
    from walstream.formats.encodings.protobuf.document import ProtoDocument

    return ProtoDocument(schema)


def _proto_fields(text: str) -> Fields:
    from walstream.formats.encodings.protobuf.field_types import proto_fields

    return proto_fields(text)


def _proto_number(text: str, history: Sequence[str], *, keep: bool) -> str:
    from walstream.formats.encodings.protobuf.numbering import number_text

    return number_text(text, history, keep=keep)


LANGUAGES: Final[Mapping[str, Language]] = {
    # a byte that says that they are there, before milliseconds, microseconds and
    # nanoseconds, 6, 8 and 9 bytes long, and two more such bytes; from 2039 on one byte
    # more is compared, which is always the same
    "avro": Language(
        AVRO, _avro_records, _avro_document, _avro_fields, ending=26, op=_avro_op
    ),
    # from `"ts_ms":` on, with numbers of 13, 16 and 19 digits
    "json_schema": Language(
        JSON_SCHEMA,
        _json_records,
        _json_document,
        _json_fields,
        ending=75,
        op=_json_op,
    ),
    # as in Avro, each behind the number of its field, one byte
    "protobuf": Language(
        PROTOBUF,
        _proto_records,
        _proto_document,
        _proto_fields,
        ending=26,
        number=_proto_number,
        op=_proto_op,
    ),
}
"""By the option `encoding`."""


def language_of(encoding: str) -> Language:
    """Find an encoding; raise ConfigError where it has no schemas in a registry."""
    found = LANGUAGES.get(encoding)
    if found is None:
        raise ConfigError(
            f"no schema registry has schemas of the encoding {encoding!r}",
            hint=f"write one of {', '.join(LANGUAGES)}",
        )
    return found


def language_of_kind(kind: str) -> Language | None:
    """Find an encoding by the registry's word for it."""
    return next((one for one in LANGUAGES.values() if one.kind == kind), None)
