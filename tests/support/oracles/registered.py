"""Records with a registry's schemas, read by Confluent's client and others' readers."""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any, Final, Self

import fastavro
import jsonschema
from confluent_kafka.schema_registry import SchemaRegistryClient

from tests.support.oracles import protobuf_values
from tests.support.oracles.topic_reader import Record

_MAGIC = b"\0"
_HEAD = 5


def _avro(text: str) -> Callable[[bytes], Any]:
    schema = fastavro.parse_schema(json.loads(text))

    def read(data: bytes) -> Any:
        stream = BytesIO(data)
        found = fastavro.schemaless_reader(stream, schema, None)
        assert not stream.read(), "more than its schema says"
        return found

    return read


def _json(text: str) -> Callable[[bytes], Any]:
    validator = jsonschema.Draft7Validator(json.loads(text))

    def read(data: bytes) -> Any:
        found = json.loads(data)
        validator.validate(found)
        return found

    return read


def _protobuf(text: str) -> Callable[[bytes], Any]:
    made = protobuf_values.message_class(text)

    def read(data: bytes) -> Any:
        assert data[:1] == b"\0", "not the first message"
        message = made.FromString(data[1:])
        assert message.SerializeToString(deterministic=True) == data[1:]
        return protobuf_values.plain(message)

    return read


READERS: Final = {"AVRO": _avro, "JSON": _json, "PROTOBUF": _protobuf}


class RegisteredReader:
    """Reads keys and values as a stranger would, by the ids in them."""

    def __init__(self, url: str) -> None:
        self.client = SchemaRegistryClient({"url": url, "timeout": 10})
        self._reads: dict[int, Callable[[bytes], Any]] = {}

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
        if number not in self._reads:
            schema = self.client.get_schema(number)
            assert schema.schema_str is not None
            make = READERS[schema.schema_type or "AVRO"]
            self._reads[number] = make(schema.schema_str)
        return self._reads[number](data[_HEAD:])

    def value_of(self, record: Record) -> Any:
        """Return the value of a record; None of a tombstone."""
        return self.read(record.value)

    def versions(self, subject: str) -> int:
        """Return how many versions a subject has."""
        return len(self.client.get_versions(subject))
