"""What converters and walstream write in Avro comes back as Connect's JSON."""

import json
from base64 import b64decode, b64encode
from functools import cache
from typing import Any

import pytest

from tests.support.oracles import debezium_avro
from tests.support.oracles.debezium_avro import AvroPairs, AvroRecord
from tests.support.oracles.every_type import documents
from walstream.formats.debezium.decode import EnvelopeDecoder, field_schemas
from walstream.formats.encodings.avro.data import BadData
from walstream.formats.encodings.avro.reader import AvroReader
from walstream.formats.encodings.wire import head


@cache
def _converted() -> dict[str, Any]:
    return debezium_avro.converted()


@cache
def _documents() -> dict[str, list[list[str | None]]]:
    return documents()


@pytest.mark.parametrize("topic", [*debezium_avro.converted()["records"]])
def test_documents_come_back_from_the_converter_with_their_schemas(topic: str) -> None:
    schemas = _converted()["schemas"]
    read = 0
    for records, shown in zip(
        _converted()["records"][topic], _documents()[topic], strict=True
    ):
        for written, text in zip(records, shown, strict=True):
            if written is None or text is None:
                continue
            reader = AvroReader(schemas[written[0]])
            wanted = json.loads(text)
            assert reader.read(b64decode(written[1]), 0) == wanted["payload"]
            assert reader.schema == wanted["schema"]
            read += 1
    assert read


def _as_json(value: Any) -> Any:
    """Return what fastavro read as Connect's JSON has it; floats are none here."""
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    if isinstance(value, dict):
        return {name: _as_json(one) for name, one in value.items()}
    return value


@cache
def _theirs() -> list[tuple[AvroRecord, AvroRecord]]:
    return [pair for pair in AvroPairs().pairs() if pair[1].value_schema]


def test_records_of_a_real_debezium_are_read() -> None:
    decoder = EnvelopeDecoder()
    ops = 0
    for theirs, ours in _theirs():
        if theirs.value is None:
            continue
        reader = AvroReader(ours.value_schema)
        found = reader.read(theirs.value, 0)
        other = _as_json(debezium_avro.read(ours.value_schema, theirs.value))
        if "types" not in theirs.topic:  # which has float4, and pairs
            assert found == other
        names: tuple[str, ...] = ()
        # of REPLICA IDENTITY USING INDEX, Debezium's key is another one
        if theirs.key is not None and "idxid" not in theirs.topic and ours.key_schema:
            key = AvroReader(ours.key_schema)
            assert tuple(key.read(theirs.key, 0)) == key.names
            names = key.names
        schemas = field_schemas(reader.schema)
        envelope = decoder.read_document(found, schemas, names)
        shown = {"schema": reader.schema, "payload": found}
        by_json = decoder.read(
            json.dumps(shown).encode(), json.dumps(dict.fromkeys(names)).encode()
        )
        assert envelope == by_json
        ops += envelope is not None
    assert ops > 40


def test_data_begins_behind_the_head() -> None:
    reader = AvroReader('"string"')
    assert reader.read(head(7) + b"\2x") == "x"
    assert reader.names == ()
    for data in (head(7), head(7) + b"\2", head(7) + b"\2xy"):
        with pytest.raises(BadData):
            reader.read(data)
