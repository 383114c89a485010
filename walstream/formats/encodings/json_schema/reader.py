"""JSON with a JSON Schema -> the document that Connect's JsonConverter would write.

Of walstream's records, and of any that Confluent's JsonSchemaConverter writes.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from walstream.errors import WalstreamError
from walstream.formats.debezium.exact_numbers import exact
from walstream.formats.encodings.json_schema.conversion import floats
from walstream.formats.encodings.json_schema.schema_reader import parsed
from walstream.formats.encodings.wire import HEAD


class BadJson(WalstreamError):
    """Bytes behind the id of a JSON Schema that are not JSON."""


class JsonSchemaReader:
    """Reads the data of one schema; from several threads."""

    def __init__(self, text: str) -> None:
        """Raise a WalstreamError for what is not a JSON Schema."""
        found = parsed(text)
        self._convert = found.convert
        self._exact = found.exact
        self.schema: Mapping[str, Any] = found.schema
        """Connect's, as JsonConverter writes it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of an object's fields; none of another type."""
        return tuple(one["field"] for one in self.schema.get("fields", ()))

    def read(self, data: bytes) -> Any:
        """Read what stands behind the head; raise BadJson, a WalstreamError."""
        try:
            found = exact(data[HEAD:]) if self._exact else orjson.loads(data[HEAD:])
            if self._convert is not None:
                found = self._convert(found)
            return floats(found) if self._exact else found
        except (ValueError, RecursionError) as error:
            name = type(error).__name__
            raise BadJson(f"not JSON behind its schema's id: {name}") from None
