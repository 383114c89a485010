"""Records of a sink's own, with a registry's schemas."""

import json

import fastavro
import pytest

from tests.support.oracles.debezium_avro import read
from walstream.errors import WalstreamError
from walstream.formats.debezium import DebeziumOptions, HeartbeatRecords
from walstream.formats.encodings.subject import SchemaId
from walstream.formats.encodings.wire import head
from walstream.kafka.registry.aside import AsideEncoding
from walstream.records.producer_record import SchemaRecord

BEATS = HeartbeatRecords(DebeziumOptions("app", adjust="avro"))


def record(value: bytes | None) -> SchemaRecord:
    return SchemaRecord(BEATS.key, value, "beats", schemas=BEATS.schemas)


def test_key_and_value_stand_behind_their_ids() -> None:
    asides = AsideEncoding("avro", "topic")
    made = record(BEATS.value(77))
    parts = asides.parts("beats", made)
    assert [one.schema.subject for one in parts] == ["beats-key", "beats-value"]
    for number, one in enumerate(parts):
        one.set(SchemaId(number))
        fastavro.parse_schema(json.loads(one.schema.text))
    encoded = asides.encode("beats", made)
    assert encoded.topic == "beats"
    assert encoded.key is not None
    assert encoded.value is not None
    assert (encoded.key[:5], encoded.value[:5]) == (head(0), head(1))
    assert read(parts[0].schema.text, encoded.key[5:]) == {"serverName": "app"}
    assert read(parts[1].schema.text, encoded.value[5:]) == {"ts_ms": 77}
    assert asides.parts("beats", made) is parts  # made once


def test_each_encoding_has_its_language() -> None:
    asides = AsideEncoding("json_schema", "topic")
    made = record(BEATS.value(77))
    parts = asides.parts("beats", made)
    assert [one.schema.kind for one in parts] == ["JSON", "JSON"]
    for number, one in enumerate(parts):
        one.set(SchemaId(number))
    assert asides.encode("beats", made).value == head(1) + b'{"ts_ms":77}'


def test_a_record_without_value_is_none_of_a_sinks_own() -> None:
    with pytest.raises(WalstreamError):
        AsideEncoding("avro", "topic").encode("beats", record(None))
