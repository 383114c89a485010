"""Avro -> the document that Connect's JsonConverter would write, and its schema.

Of walstream's records, of Debezium's through Apicurio's or Confluent's converter, and
of any other that AvroData writes. The data is read by the schema that it was written
with, which is that of its id.
"""

from collections.abc import Mapping
from typing import Any, Final

from walstream.formats.encodings.avro.data import AvroData, BadData
from walstream.formats.encodings.avro.schema_reader import parsed

MAGIC: Final = b"\0"
HEAD: Final = 5  # bytes before the data: the magic one, and the schema's id


def schema_id(record: bytes | None) -> int | None:
    """Return the id of a record in Confluent's wire format; None: it has another."""
    if record is None or len(record) < HEAD or record[:1] != MAGIC:
        return None
    return int.from_bytes(record[1:HEAD], "big")


class AvroReader:
    """Reads the data of one schema; from several threads."""

    def __init__(self, text: str) -> None:
        """Raise BadSchema, a WalstreamError, for what is none of Avro."""
        node = parsed(text)
        self._read = node.read
        self.schema: Mapping[str, Any] = node.schema
        """Connect's, as JsonConverter writes it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of a record's fields; none of another type."""
        return tuple(one["field"] for one in self.schema.get("fields", ()))

    def read(self, data: bytes, start: int = HEAD) -> Any:
        """Read what stands behind the head; raise BadData, a WalstreamError."""
        rest = AvroData(data, start)
        try:
            found = self._read(rest)
        except RecursionError:
            raise BadData("not the Avro data of its schema: too deep") from None
        rest.end()
        return found
