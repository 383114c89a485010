"""Schemas are the texts that Confluent's JsonSchemaData makes of the same tree."""

import json
from dataclasses import replace

import pytest

from walstream.formats.debezium import DebeziumOptions, SinkTurn
from walstream.formats.debezium.connect import Schema, array, number, struct, text
from walstream.formats.debezium.connect_type import SPARSE, VARIABLE, decimal
from walstream.formats.debezium.hstore import MAP
from walstream.formats.debezium.source_block import TRANSACTION
from walstream.formats.encodings.json_schema.record import JsonSchemaEnvelope
from walstream.formats.encodings.json_schema.schema_text import json_schema
from walstream.op import ColumnFacts, Table

STAMP = "io.debezium.time.ZonedTimestamp"


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("boolean", '{"type":"boolean"}'),
        ("int16", '{"type":"integer","connect.type":"int16"}'),
        ("int32", '{"type":"integer","connect.type":"int32"}'),
        ("int64", '{"type":"integer","connect.type":"int64"}'),
        ("float", '{"type":"number","connect.type":"float32"}'),
        ("double", '{"type":"number","connect.type":"float64"}'),
        ("string", '{"type":"string"}'),
        ("bytes", '{"type":"string","connect.type":"bytes"}'),
    ],
)
def test_types_have_the_converters_words(kind: str, written: str) -> None:
    assert json_schema(Schema(kind)) == written
    assert json_schema(Schema(kind, optional=True)) == (
        f'{{"oneOf":[{{"type":"null"}},{written}]}}'
    )
    listed = f'{{"type":"array","items":{written}}}'
    assert json_schema(array(Schema(kind))) == listed


def test_a_field_has_its_place_and_a_struct_its_name() -> None:
    whole = struct(
        "app.public.t.Value",
        ("id", Schema("int64")),
        ("prg", number("int64", "io.debezium.time.Timestamp").as_optional()),
        ("at", text(STAMP).with_default('"1970-01-01T00:00:00Z"')),
        ("host", text().as_optional().with_default('"local\\"host"')),
    )
    assert json_schema(whole) == (
        '{"type":"object","title":"app.public.t.Value","properties":{'
        '"id":{"type":"integer","connect.index":0,"connect.type":"int64"},'
        '"prg":{"connect.index":1,"oneOf":[{"type":"null"},{"type":"integer",'
        '"title":"io.debezium.time.Timestamp","connect.version":1,'
        '"connect.type":"int64"}]},'
        '"at":{"type":"string","title":"io.debezium.time.ZonedTimestamp",'
        '"default":"1970-01-01T00:00:00Z","connect.index":2,"connect.version":1},'
        '"host":{"connect.index":3,"oneOf":[{"type":"null"},{"type":"string",'
        '"default":"local\\"host"}]}},"connect.version":1}'
    )


def test_a_decimal_is_the_text_that_its_values_are() -> None:
    assert json_schema(decimal(4, 14)) == (
        '{"type":"string","title":"org.apache.kafka.connect.data.Decimal",'
        '"connect.version":1,"connect.type":"bytes",'
        '"connect.parameters":{"scale":"4","connect.decimal.precision":"14"}}'
    )
    made = json.loads(json_schema(VARIABLE))
    assert made["description"] == "Variable scaled decimal"
    assert made["properties"]["value"] == {
        "type": "string",
        "connect.index": 1,
        "connect.type": "bytes",
    }


def test_maps_of_texts_are_objects_and_others_lists_of_pairs() -> None:
    assert json_schema(MAP) == (
        '{"type":"object","additionalProperties":{"oneOf":[{"type":"null"},'
        '{"type":"string"}]},"connect.type":"map"}'
    )
    vector = json.loads(json_schema(SPARSE))["properties"]["vector"]
    assert vector == {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "key": {
                    "type": "integer",
                    "connect.index": 0,
                    "connect.type": "int16",
                },
                "value": {
                    "type": "number",
                    "connect.index": 1,
                    "connect.type": "float64",
                },
            },
        },
        "connect.index": 1,
        "connect.type": "map",
    }
    some = replace(MAP, keys=text().as_optional())
    assert json.loads(json_schema(some))["type"] == "array"


@pytest.mark.parametrize("default", ['"NaN"', '"Infinity"', '"-Infinity"'])
def test_a_default_that_is_no_number_is_left_out(default: str) -> None:
    assert "default" not in json_schema(Schema("double").with_default(default))
    assert "default" in json_schema(text().with_default(default))


def test_an_envelope_is_the_converters() -> None:
    facts = (
        ColumnFacts(not_null=True, type_oid=23, type_name="int4"),
        ColumnFacts(default="1.5", type_oid=1700, type_name="numeric"),
    )
    table = Table(
        "public",
        "t",
        ("id", "n"),
        (0,),
        (23, 1700),
        modifiers=(-1, 327_686),
        facts=facts,
    )
    options = DebeziumOptions("app")
    made = json.loads(JsonSchemaEnvelope(table, options, SinkTurn()).schema_text)
    assert [*made] == ["type", "title", "properties", "connect.version"]
    assert made["title"] == "app.public.t.Envelope"
    assert made["connect.version"] == 2
    assert [*made["properties"]] == [
        *("before", "after", "source", "transaction", "op", "ts_ms", "ts_us", "ts_ns")
    ]
    row = {
        "type": "object",
        "title": "app.public.t.Value",
        "properties": {
            "id": {"type": "integer", "connect.index": 0, "connect.type": "int32"},
            "n": {
                "connect.index": 1,
                "oneOf": [
                    {"type": "null"},
                    {
                        "type": "string",
                        "title": "org.apache.kafka.connect.data.Decimal",
                        "default": "AJY=",
                        "connect.version": 1,
                        "connect.type": "bytes",
                        "connect.parameters": {
                            "scale": "2",
                            "connect.decimal.precision": "5",
                        },
                    },
                ],
            },
        },
    }
    before, after = made["properties"]["before"], made["properties"]["after"]
    assert before == {"connect.index": 0, "oneOf": [{"type": "null"}, row]}
    assert after == {"connect.index": 1, "oneOf": [{"type": "null"}, row]}
    snapshot = made["properties"]["source"]["properties"]["snapshot"]["oneOf"][1]
    assert snapshot["default"] == "false"
    assert snapshot["connect.parameters"]["allowed"].startswith("true,first,")
    assert TRANSACTION.optional
    assert made["properties"]["transaction"]["oneOf"][0] == {"type": "null"}
