"""Rows of a polled table in each encoding, and who reads them back.

rows = made("avro", SPEC)            # an encoder whose ids are set
read(rows, record)                   # as walstream's readers do: a PolledRow
stranger(rows, record)               # as fastavro, jsonschema and protobuf do
"""

from dataclasses import dataclass
from typing import Any, Final

from tests.support.oracles.registered import READERS
from walstream.formats.encodings.languages import language_of
from walstream.formats.encodings.readers import SchemaReader, reader_of
from walstream.formats.encodings.row.column import RowColumn, RowColumnType
from walstream.formats.encodings.row.document import RowDocument
from walstream.formats.encodings.row.encoder import RegisteredRows
from walstream.formats.encodings.row.schema import RowSpec
from walstream.formats.encodings.subject import SchemaId, SubjectSchema
from walstream.formats.encodings.wire import HEAD
from walstream.formats.row import PolledRow, RowEncoder

ENCODINGS: Final = ("avro", "json_schema", "protobuf")
AT: Final = 1795242889.1057744


def columns(**types: RowColumnType) -> tuple[RowColumn, ...]:
    """Return columns that may be null, behind a key `id`."""
    key = RowColumn("id", RowColumnType("int64"), required=True)
    return (key, *(RowColumn(name, one) for name, one in types.items()))


def spec(found: tuple[RowColumn, ...], encoding: str = "avro", **told: Any) -> RowSpec:
    """Return a table `t` of the source `app`, whose key comes first."""
    adjust = "none" if encoding == "json_schema" else "avro"
    own: dict[str, Any] = {"adjust": adjust, "finite": encoding == "json_schema"}
    return RowSpec("app", ("", "t"), found, 0, **{**own, **told})


@dataclass(frozen=True)
class Rows:
    """An encoder, and the texts that a registry has of its schemas, by id."""

    encoder: RegisteredRows
    hashes: RowEncoder
    schemas: dict[int, SubjectSchema]

    def write(self, *rows: Any) -> list[bytes]:
        """Write rows as a task does."""
        return self.encoder.encode(rows, self.hashes.hashes(rows), AT)

    def reader(self, record: bytes) -> SchemaReader:
        """Return walstream's reader of a record."""
        found = self.schemas[int.from_bytes(record[1:HEAD], "big")]
        return reader_of(found.kind, found.text)


def made(encoding: str, told: RowSpec) -> Rows:
    """Make an encoder whose schemas are registered."""
    encoder = RegisteredRows(encoding, told, "t")
    number = language_of(encoding).number
    schemas: dict[int, SubjectSchema] = {}
    for place, part in enumerate(encoder.parts("topic", "t"), 7):
        text = part.schema.text
        if number is not None:
            text = number(text, [], keep=False)
        schemas[place] = SubjectSchema(part.schema.subject, text, part.schema.kind)
        part.set(SchemaId(place, text))
    names = [one.name for one in told.columns]
    return Rows(encoder, RowEncoder(told.source, "t", names), schemas)


def read(rows: Rows, record: bytes) -> PolledRow:
    """Read a record's value as walstream does."""
    reader = rows.reader(record)
    assert RowDocument.is_of(reader.schema)
    return RowDocument(reader.schema).read(reader.read(record))


def stranger(rows: Rows, record: bytes) -> Any:
    """Read a record as other libraries do."""
    found = rows.schemas[int.from_bytes(record[1:HEAD], "big")]
    return READERS[found.kind](found.text)(record[HEAD:])
