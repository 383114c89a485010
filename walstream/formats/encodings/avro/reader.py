"""Avro -> the document that Connect's JsonConverter would write, and its schema.

Of walstream's records, of Debezium's through Apicurio's or Confluent's converter, and
of any other that AvroData writes. The data is read by the schema that it was written
with, which is that of its id.
"""

from collections.abc import Mapping
from typing import Any

from walstream.formats.encodings.avro.data import AvroData, BadData
from walstream.formats.encodings.avro.schema_reader import parsed
from walstream.formats.encodings.wire import HEAD


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
