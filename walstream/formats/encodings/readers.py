"""Readers of records by a registry's schema, chosen by the language that it is in."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from walstream.errors import WalstreamError

AVRO: Final = "AVRO"  # as the registry's API names it, and what it means without a word
JSON_SCHEMA: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"


class SchemaReader(Protocol):
    """Reads the data of one schema; from several threads."""

    schema: Mapping[str, Any]
    """Connect's, as JsonConverter writes it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of a record's fields; none of another type."""

    def read(self, data: bytes) -> Any:
        """Read what stands behind the head, as JsonConverter would write it.

        Raises a WalstreamError for what is not of the schema.
        """


# ruff: noqa: PLC0415 - few consumers read any, and the modules of each are some


def _avro(text: str) -> SchemaReader:
    from walstream.formats.encodings.avro.reader import AvroReader

    return AvroReader(text)


def _json(text: str) -> SchemaReader:
    from walstream.formats.encodings.json_schema.reader import JsonSchemaReader

    return JsonSchemaReader(text)


def _proto(text: str) -> SchemaReader:
    from walstream.formats.encodings.protobuf.reader import ProtoReader

    return ProtoReader(text)


_READERS: Final[Mapping[str, Callable[[str], SchemaReader]]] = {
    AVRO: _avro,
    JSON_SCHEMA: _json,
    PROTOBUF: _proto,
}
_NAMES: Final = "Avro, JSON Schema and Protobuf are"


def reader_of(kind: str | None, text: str) -> SchemaReader:
    """Return what reads by a schema; raise a WalstreamError for one that nobody reads.

    `kind` is the registry's word for its language.
    """
    make = _READERS.get(kind or AVRO)
    if make is None:
        raise WalstreamError(f"it is in {kind}, where {_NAMES} read")
    return make(text)
