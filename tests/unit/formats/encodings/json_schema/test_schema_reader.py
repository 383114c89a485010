"""The text of a JSON Schema is read as Connect's schema; all of it in the properties.

`tests/property/test_json_schema.py` has every type; here is what others write.
"""

import json
from typing import Any

import pytest

from walstream.formats.encodings.json_schema.schema_reader import (
    BadJsonSchema,
    parsed,
)

STRING = {"type": "string", "optional": False}
INT64 = {"type": "int64", "optional": False}


def schema(told: Any) -> Any:
    return parsed(json.dumps(told)).schema


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ({"type": "integer"}, INT64),
        ({"type": "number"}, {"type": "double", "optional": False}),
        ({"type": ["null", "string"]}, {**STRING, "optional": True}),
        (
            {"oneOf": [{"type": "null"}, {"type": "integer"}]},
            {**INT64, "optional": True},
        ),
        ({"anyOf": [{"type": "string"}]}, STRING),
        ({"enum": ["a", "b"]}, STRING),
        ({"type": "integer", "connect.type": "int8"}, {**INT64, "type": "int8"}),
        (
            {"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"type": "string"}}},
            STRING,
        ),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, {"optional": True}),
        ({"allOf": []}, {"optional": True}),
        ({"type": "string", "connect.type": "other"}, STRING),
    ],
)
def test_others_schemas_are_read_as_far_as_connect_goes(told: Any, read: Any) -> None:
    assert schema(told) == read


def test_fields_are_in_the_order_of_their_places() -> None:
    told = {
        "type": "object",
        "properties": {
            "b": {"type": "string", "connect.index": 1},
            "a": {"connect.index": 0, "oneOf": [{"type": "null"}, {"type": "string"}]},
        },
    }
    assert [one["field"] for one in schema(told)["fields"]] == ["a", "b"]
    for one in told["properties"].values():  # type: ignore[attr-defined]
        del one["connect.index"]
    assert [one["field"] for one in schema(told)["fields"]] == ["b", "a"]


def test_a_type_within_itself_ends() -> None:
    told = {
        "type": "object",
        "properties": {name: {"$ref": "#"} for name in "abc"},
    }
    unknown = {"optional": True}
    within = [{**unknown, "field": name} for name in "abc"]
    again = {"type": "struct", "fields": within, "optional": False}
    assert schema(told)["fields"] == [{**again, "field": "a"}] + [
        {**again, "field": name} for name in "bc"
    ]
    doubled: Any = {"type": "string"}
    definitions = {"t0": doubled}
    for number in range(1, 50):
        inner = {"$ref": f"#/definitions/t{number - 1}"}
        definitions[f"t{number}"] = {
            "type": "object",
            "properties": {"a": inner, "b": inner},
        }
    assert schema({"$ref": "#/definitions/t49", "definitions": definitions})


@pytest.mark.parametrize("text", ["", "{", "[]", "true", '{"oneOf":3}', '{"$ref":1}'])
def test_what_is_not_a_schema_is_refused(text: str) -> None:
    with pytest.raises(BadJsonSchema):
        parsed(text)


def test_the_digits_of_a_decimal_that_is_a_number_are_asked_for() -> None:
    told = {
        "type": "number",
        "title": "org.apache.kafka.connect.data.Decimal",
        "connect.type": "bytes",
        "connect.parameters": {"scale": "2"},
    }
    assert parsed(json.dumps(told)).exact
    assert schema(told)["type"] == "bytes"
    assert not parsed(json.dumps({**told, "type": "string"})).exact
