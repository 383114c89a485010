"""Protobuf -> the document that Connect's JsonConverter would write, and its schema.

Of walstream's records, of Debezium's through Confluent's ProtobufConverter, and of any
other whose schema `schema_reader` reads: the first message, or that which the record
names. Fields of columns that are gone are left out, and so are those that it lacks.
"""

from collections.abc import Mapping
from typing import Any, Final

from walstream.formats.encodings.protobuf.data import BadProtoData, ProtoData
from walstream.formats.encodings.protobuf.message_reader import (
    MessageReader,
    MessageReaders,
)
from walstream.formats.encodings.protobuf.schema_reader import parsed_proto
from walstream.formats.encodings.protobuf.values import SCALARS
from walstream.formats.encodings.wire import HEAD

_MOST: Final = 20  # messages within messages that a record may name
_ZIGZAG: Final = SCALARS["sint64"][2]


class ProtoReader:
    """Reads the data of one schema; from several threads."""

    def __init__(self, text: str) -> None:
        """Raise BadProto, a WalstreamError, for what is none of protobuf."""
        file = parsed_proto(text)
        self._file = file
        self._readers = MessageReaders(file)
        self._first = self._readers.of(file.name)
        self.schema: Mapping[str, Any] = {**self._first.schema, "name": file.name}
        """Connect's, as JsonConverter writes it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of a record's fields."""
        return tuple(one["field"] for one in self.schema["fields"])

    def read(self, data: bytes, start: int = HEAD) -> Any:
        """Read what stands behind the head; raise BadProtoData, a WalstreamError."""
        rest = ProtoData(data, start)
        reader = self._named(rest)
        try:
            return reader.read(data, rest.at)
        except RecursionError:
            raise BadProtoData(
                "not the protobuf data of its schema: too deep"
            ) from None

    def _named(self, data: ProtoData) -> MessageReader:
        """Read which message it is: 0 is the first, else its place and those within."""
        count: int = _ZIGZAG(data.varint())
        if count == 0:
            return self._first
        if not 0 < count <= _MOST:
            raise data.refused("no message of its schema, before it,")
        places: list[int] = [_ZIGZAG(data.varint()) for _ in range(count)]
        found, name = self._file.messages, self._file.package
        for place in places:
            if not 0 <= place < len(found):
                raise data.refused("no message of its schema, before it,")
            name = f"{name}.{found[place].name}" if name else found[place].name
            found = found[place].messages
        return self._readers.of(name)
