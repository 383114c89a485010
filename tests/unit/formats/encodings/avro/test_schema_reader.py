"""Schemas of Avro, as Connect's converters read them."""

import json
from typing import Any

import pytest

from walstream.formats.encodings.avro.data import AvroData, BadData
from walstream.formats.encodings.avro.schema_reader import BadSchema, parsed

KAFKA = "org.apache.kafka.connect.data."


def schema_of(told: Any) -> dict[str, Any]:
    return parsed(json.dumps(told)).schema


def read(told: Any, data: bytes) -> Any:
    return parsed(json.dumps(told)).read(AvroData(data))


def record(*fields: Any, name: str = "a.b.R", **more: Any) -> dict[str, Any]:
    named = [{"name": f"f{n}", "type": one} for n, one in enumerate(fields)]
    return {"type": "record", "name": name, "fields": named, **more}


@pytest.mark.parametrize(
    ("told", "name", "parameters"),
    [
        ({"type": "int", "logicalType": "date"}, "Date", None),
        ({"type": "int", "logicalType": "time-millis"}, "Time", None),
        ({"type": "long", "logicalType": "timestamp-millis"}, "Timestamp", None),
        (
            {"type": "bytes", "logicalType": "decimal", "scale": 2, "precision": 5},
            "Decimal",
            {"scale": "2", "connect.decimal.precision": "5"},
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 64},
            "Decimal",
            {"scale": "0"},
        ),
    ],
)
def test_a_logical_type_is_connects(
    told: Any, name: str, parameters: dict[str, str] | None
) -> None:
    found = schema_of(told)
    assert (found["name"], found["version"]) == (f"{KAFKA}{name}", 1)
    assert found.get("parameters") == parameters


def test_other_logical_types_are_none() -> None:
    told = {"type": "long", "logicalType": "timestamp-micros"}
    assert schema_of(told) == {"type": "int64", "optional": False}


def test_what_connect_says_is_there() -> None:
    told = {
        "type": "int",
        "connect.type": "int8",
        "connect.name": "n",
        "connect.version": 2,
        "connect.doc": "d",
        "connect.parameters": {"a": "b"},
        "connect.default": 3,
    }
    assert schema_of(["null", told]) == {
        "type": "int8",
        "optional": True,
        "name": "n",
        "version": 2,
        "doc": "d",
        "parameters": {"a": "b"},
        "default": 3,
    }


def test_a_record_has_the_name_that_it_has_in_avro() -> None:
    assert schema_of(record("int"))["name"] == "a.b.R"
    own = record("int", **{"connect.name": "own"})
    assert schema_of(own)["name"] == "own"
    unnamed = record("int", name="io.confluent.connect.avro.ConnectDefault")
    assert "name" not in schema_of(unnamed)


def test_names_are_of_a_namespace() -> None:
    inner = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}
    told = record(inner, "a.b.I", ["null", "I"])
    assert [one["name"] for one in schema_of(told)["fields"]] == ["a.b.I"] * 3
    assert read(told, b"\2\4\2\6") == {"f0": {"x": 1}, "f1": {"x": 2}, "f2": {"x": 3}}


def test_a_default_of_bytes_is_base64() -> None:
    told = record("int")
    told["fields"] = [{"name": "x", "type": "bytes", "default": "\u00ff"}]
    (found,) = schema_of(told)["fields"]
    assert (found["type"], found["default"]) == ("bytes", "/w==")


def test_an_array_of_pairs_is_a_map() -> None:
    entry = {
        "type": "record",
        "name": "MapEntry",
        "namespace": "io.confluent.connect.avro",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "string"}],
    }
    named = {**entry, "namespace": "x", "connect.internal.type": "MapEntry"}
    for one in (entry, named):
        told = {"type": "array", "items": one}
        assert schema_of(told)["type"] == "map"
        assert read(told, b"\2\2\2x\0") == [[1, "x"]]
    assert read({"type": "array", "items": {**entry, "name": "M"}}, b"\0") == []
    texts = [{"name": "key", "type": "string"}, {"name": "value", "type": "string"}]
    by_text = {**entry, "fields": texts}
    assert read({"type": "array", "items": by_text}, b"\2\2a\2x\0") == {"a": "x"}


def test_enums_are_texts_and_fixed_are_bytes() -> None:
    told = record(
        {"type": "enum", "name": "E", "symbols": ["a", "b"]},
        {"type": "fixed", "name": "F", "size": 2},
    )
    assert [one["type"] for one in schema_of(told)["fields"]] == ["string", "bytes"]
    assert read(told, b"\2xy") == {"f0": "b", "f1": "eHk="}


def test_a_union_of_several_is_a_struct() -> None:
    told = ["int", record("int"), "null", {"type": "array", "items": "int"}]
    found = schema_of(told)
    assert [one["field"] for one in found["fields"]] == ["int", "R", "array"]
    assert found["optional"]
    assert read(told, b"\2\4") == {"int": None, "R": {"f0": 2}, "array": None}
    assert read(told, b"\4") is None


def test_a_type_that_holds_itself_ends() -> None:
    told = record(["null", "a.b.R"])
    assert read(told, b"\2\0") == {"f0": {"f0": None}}
    with pytest.raises(BadData, match="too deep"):
        read(told, b"\2" * 1000)
    with pytest.raises(BadData, match="too deep"):
        read(record("a.b.R"), b"")


EMPTY = {"type": "record", "name": "E", "fields": []}


def test_a_table_without_columns_has_a_record() -> None:
    told = record(["null", EMPTY], ["null", "E"])
    assert read(told, b"\2\0") == {"f0": {}, "f1": None}


@pytest.mark.parametrize(
    "told",
    [
        "nothing",
        17,
        None,
        [],
        {},
        ["int", "int"],
        {"type": "record", "name": "x"},
        {"type": "record", "fields": []},
        {"type": "array"},
        {"type": "array", "items": "null"},
        {"type": "array", "items": EMPTY},
        {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}},
        {"type": "fixed", "name": "F", "size": -1},
        {"type": "fixed", "name": "F", "size": "2"},
        {"type": "map", "values": EMPTY},
        {"type": "enum", "name": "E"},
        {"type": {"type": 3}},
        record("null"),
        record(EMPTY),
        record(record("int"), record("int")),
        {**record("int"), "fields": [{"name": "x", "type": "int"}] * 2},
        {"type": "int", "connect.parameters": 3},
        record({"type": "bytes", "connect.default": "\u0100"}),
    ],
)
def test_what_is_no_schema_is_refused(told: Any) -> None:
    with pytest.raises(BadSchema, match="not a schema of Avro"):
        parsed(json.dumps(told))


@pytest.mark.parametrize("text", ["", "{", "[" * 5000, "nul"])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(BadSchema, match="not a schema of Avro"):
        parsed(text)


def test_types_within_types_have_an_end() -> None:
    told: Any = "int"
    for _ in range(100):
        told = {"type": "array", "items": told}
    with pytest.raises(BadSchema, match="too deep"):
        parsed(json.dumps(told))
