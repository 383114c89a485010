"""Types of columns in words, of a JSON Schema."""

import pytest

from tests.support.loads import registered_op
from walstream.errors import WalstreamError
from walstream.formats.debezium import DebeziumOptions, SinkTurn
from walstream.formats.encodings.json_schema.field_types import json_schema_fields
from walstream.formats.encodings.json_schema.op import JsonSchemaOp
from walstream.formats.encodings.json_schema.record import (
    JsonSchemaEnvelope,
    JsonSchemaRow,
)
from walstream.op import ColumnFacts, Table

FACTS = (
    ColumnFacts(not_null=True, type_oid=23, type_name="int4"),
    ColumnFacts(type_oid=1700, type_name="numeric"),
    ColumnFacts(type_oid=16500, type_name="mood", labels=("sad", "ok")),
    ColumnFacts(type_oid=1007, type_name="_int4", element_oid=23, element_name="int4"),
)
TABLE = Table(
    "public",
    "t",
    ("id", "n", "m", "a"),
    (0,),
    (23, 1700, 16500, 1007),
    modifiers=(-1, 327_686, -1, -1),
    facts=FACTS,
)


@pytest.mark.parametrize("made", [JsonSchemaEnvelope, JsonSchemaRow])
def test_fields_are_those_of_the_row(
    made: type[JsonSchemaEnvelope] | type[JsonSchemaRow],
) -> None:
    found = json_schema_fields(
        made(TABLE, DebeziumOptions("app"), SinkTurn()).schema_text
    )
    assert {name: kind for name, (kind, _) in found.items()} == {
        "id": "int32",
        "n": "null or Decimal(5,2)",
        "m": "null or Enum(sad,ok)",
        "a": "null or array of null or int32",
    }


@pytest.mark.parametrize("text", ["", "[]", '{"type":"string"}'])
def test_what_has_no_fields_is_refused(text: str) -> None:
    with pytest.raises((WalstreamError, KeyError)):
        json_schema_fields(text)


def test_fields_of_an_op_are_those_of_its_row() -> None:
    text = JsonSchemaOp(registered_op.TABLE, registered_op.OPTIONS).schema_text
    assert json_schema_fields(text).keys() == {"id", "v", "n"}
