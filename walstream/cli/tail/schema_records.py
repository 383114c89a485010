"""Records of a registry's schemas as those of JSON."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import orjson

from walstream.errors import WalstreamError
from walstream.formats.debezium.position import HEADER
from walstream.formats.encodings.op.document import OpDocument
from walstream.formats.encodings.readers import SchemaReader, reader_of
from walstream.formats.encodings.row.document import RowDocument
from walstream.formats.encodings.wire import schema_id
from walstream.formats.op import OpEncoder
from walstream.formats.row import written
from walstream.kafka.registry.errors import (
    RegistryAway,
    RegistryRefused,
    SchemaUnregistered,
)
from walstream.kafka.topic_reader import TopicRecord

_ANY: Final = -1


class SchemaRecords:
    """Reads records by schemas that are asked for once each."""

    def __init__(
        self,
        schema_of: Callable[[int], tuple[str, str]] | None,
        tell: Callable[[str], None],
    ) -> None:
        """`schema_of` asks the registry, if there is one: for language and text.

        `tell` hears of what cannot be read, once.
        """
        self._schema_of = schema_of
        self._tell = tell
        self._readers: dict[int, SchemaReader | None] = {}
        self._ops: dict[int, OpDocument] = {}  # those of the format `op`
        self._rows: dict[int, RowDocument] = {}  # those of the format `row`
        self._told: set[int] = set()

    def plain(self, record: TopicRecord) -> tuple[TopicRecord, bytes | None]:
        """Return a record as JSON of it, and its value with the schema's name.

        What has no schema's id stays as it is, and what cannot be read. Raises
        RegistryAway and RegistryRefused.
        """
        key, _ = self._read(record.key)
        value, named = self._read(record.value)
        if key is record.key and value is record.value:
            return record, value
        if value is not None and value is named and value is not record.value:
            # the format `op`, or `row`, as in JSON: its value names it
            headers = [one for one in record.headers if one[0] != HEADER]
            return replace(record, key=key, value=value, headers=headers), value
        return replace(record, key=key, value=value), named

    def _read(self, data: bytes | None) -> tuple[bytes | None, bytes | None]:
        number = schema_id(data)
        reader = None if number is None else self._reader(number)
        if data is None or reader is None:
            return data, data
        try:
            document: Any = reader.read(data)
            if number in self._ops:
                op = self._ops[number].read(document)
                text = OpEncoder(op.table).encode(op)
                return text, text
            if number in self._rows:
                text = written(self._rows[number].read(document))
                return text, text
            name = {"name": reader.schema.get("name", "")}
            named = orjson.dumps({"schema": name, "payload": document})
            return orjson.dumps(document), named
        except WalstreamError:
            return data, data

    def _reader(self, number: int) -> SchemaReader | None:
        if self._schema_of is None:
            self._say(_ANY, "--registry URL reads them")
            return None
        if number not in self._readers:
            try:
                self._readers[number] = self._made(number, self._schema_of)
            except SchemaUnregistered:  # a registry's follower may learn of it yet
                self._say(number, "the registry does not know it")
                return None
        return self._readers[number]

    def _made(
        self, number: int, schema_of: Callable[[int], tuple[str, str]]
    ) -> SchemaReader | None:
        try:
            made = reader_of(*schema_of(number))
            if OpDocument.is_of(made.schema):
                self._ops[number] = OpDocument(made.schema)
            elif RowDocument.is_of(made.schema):
                self._rows[number] = RowDocument(made.schema)
        except (RegistryAway, RegistryRefused, SchemaUnregistered):
            raise
        except WalstreamError as error:
            self._say(number, str(error.args[0]))
            return None
        return made

    def _say(self, number: int, why: str) -> None:
        if number not in self._told:
            self._told.add(number)
            which = f"of schema {number}"
            if number == _ANY:
                which = "with the id of a schema"
            self._tell(f"records {which} are shown as they are: {why}")
