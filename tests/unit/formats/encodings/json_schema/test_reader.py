"""JSON behind a schema's id is read as Connect's JsonConverter would write it."""

import json

import pytest

from walstream.formats.encodings.json_schema.reader import BadJson, JsonSchemaReader
from walstream.formats.encodings.wire import head

DECIMAL = {
    "type": "number",
    "title": "org.apache.kafka.connect.data.Decimal",
    "connect.type": "bytes",
    "connect.parameters": {"scale": "20"},
}
ROW = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "connect.index": 0},
        "n": {"connect.index": 1, "oneOf": [{"type": "null"}, DECIMAL]},
        "f": {"type": "number", "connect.index": 2},
    },
}


def read(told: object, value: bytes) -> object:
    return JsonSchemaReader(json.dumps(told)).read(head(7) + value)


def test_a_decimal_that_is_a_number_keeps_its_digits() -> None:
    """So the converter writes it with `decimal.format` NUMERIC."""
    told = b'{"id":1,"n":1.00000000000000000001,"f":0.1}'
    assert read(ROW, told) == {"id": 1, "n": "BWvHXi1jEAAB", "f": 0.1}
    assert read(ROW, b'{"id":1,"n":null,"x":0.5}') == {"id": 1, "n": None, "x": 0.5}


def test_others_are_read_as_they_are() -> None:
    reader = JsonSchemaReader('{"type":"object","properties":{"b":{},"a":{}}}')
    assert reader.names == ("b", "a")
    assert reader.read(head(0) + b'{"a":[1,"x"]}') == {"a": [1, "x"]}
    assert JsonSchemaReader('{"type":"string"}').names == ()


@pytest.mark.parametrize("value", [b"", b"{", b"\xff", b"[" * 5000])
@pytest.mark.parametrize("told", [ROW, {}])
def test_what_is_not_json_is_refused_without_its_value(
    told: object, value: bytes
) -> None:
    with pytest.raises(BadJson, match="not JSON behind its schema's id"):
        read(told, value)
