"""Records with a registry's schemas, read by Confluent's client and fastavro."""

import json
from io import BytesIO
from typing import Any, Self

import fastavro
from confluent_kafka.schema_registry import SchemaRegistryClient

from tests.support.oracles.topic_reader import Record

_MAGIC = b"\0"
_HEAD = 5


class RegisteredReader:
    """Reads keys and values as a stranger would, by the ids in them."""

    def __init__(self, url: str) -> None:
        self.client = SchemaRegistryClient({"url": url, "timeout": 10})
        self._schemas: dict[int, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def read(self, data: bytes | None) -> Any:
        """Return what a record has; None of a tombstone."""
        if data is None:
            return None
        assert data[:1] == _MAGIC, data[:20]
        number = int.from_bytes(data[1:_HEAD], "big")
        if number not in self._schemas:
            text = self.client.get_schema(number).schema_str
            assert text is not None
            self._schemas[number] = fastavro.parse_schema(json.loads(text))
        stream = BytesIO(data[_HEAD:])
        found = fastavro.schemaless_reader(stream, self._schemas[number], None)
        assert not stream.read(), "more than its schema says"
        return found

    def value_of(self, record: Record) -> Any:
        """Return the value of a record; None of a tombstone."""
        return self.read(record.value)

    def versions(self, subject: str) -> int:
        """Return how many versions a subject has."""
        return len(self.client.get_versions(subject))
