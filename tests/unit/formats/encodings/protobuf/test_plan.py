"""Values of JSON by the numbers of their message."""

import json
from typing import Any

import pytest

from tests.support.oracles.protobuf_values import meant, read
from walstream.errors import WalstreamError
from walstream.formats.debezium.connect import Schema, array, struct, text
from walstream.formats.encodings.protobuf import number, parsed_proto, proto_shape
from walstream.formats.encodings.protobuf.message import ProtoMessage
from walstream.formats.encodings.protobuf.plan import StructPlan, integer, resolve

INT = Schema("int32", optional=True)
PAIR = struct("b.Pair", ("key", text()), ("n", INT))
WHOLE = struct(
    "a.Whole",
    ("pairs", array(PAIR.as_optional()).as_optional()),
    ("lists", array(array(INT).as_optional())),
    ("texts", Schema("map", keys=text(), values=text().as_optional())),
    ("numbers", Schema("map", optional=True, keys=Schema("int16"), values=PAIR)),
    ("pair", PAIR),
    ("flag", Schema("boolean")),
    ("real", Schema("double")),
)
FULL = {
    "pairs": [{"key": "a", "n": None}, None, {"key": "", "n": 0}],
    "lists": [[1, None], None, []],
    "texts": {"a": None, "": "b"},
    "numbers": [[7, {"key": "k", "n": -1}]],
    "pair": {"key": "x", "n": 3},
    "flag": True,
    "real": -0.0,
}
EMPTY: dict[str, Any] = {
    "pairs": None,
    "lists": [],
    "texts": {},
    "numbers": None,
    "pair": {"key": "", "n": None},
    "flag": False,
    "real": 0.0,
}


@pytest.mark.parametrize("value", [FULL, EMPTY])
@pytest.mark.parametrize(
    "history", ["", "message Whole { bool real = 1; bool no = 2; }"]
)
def test_each_form_is_read_as_it_was(value: dict[str, object], history: str) -> None:
    versions = [parsed_proto(history)] if history else []
    file = number(proto_shape(WHOLE), versions)
    written = StructPlan(WHOLE, file.first, []).document(json.dumps(value))
    found = read(WHOLE, file.text(), written)
    wanted = meant(WHOLE, value)
    wanted["real"] = repr(wanted["real"])
    assert found == wanted


@pytest.mark.parametrize("nulls", [1, 2])
def test_places_of_nulls_stand_where_their_number_is(nulls: int) -> None:
    schema = struct("a.N", ("x", array(INT)))
    history = (
        "message N { ArrayOfInt32 x = 1; message ArrayOfInt32 {"
        f" repeated int32 nulls = {nulls}; repeated int32 items = {3 - nulls}; }} }}"
    )
    file = number(proto_shape(schema), [parsed_proto(history)])
    written = StructPlan(schema, file.first, []).document('{"x":[1,null]}')
    assert read(schema, file.text(), written) == {"x": [1, None]}


def test_another_types_value_is_refused() -> None:
    schema = struct("a.N", ("x", Schema("int32")))
    plan = StructPlan(schema, number(proto_shape(schema), []).first, [])
    for payload in ('{"x":null}', '{"x":2147483648}'):
        with pytest.raises(ValueError, match="not"):
            plan.document(payload)
    assert integer("int16", -32768) == b"\x80\x80\xfe\xff\xff\xff\xff\xff\xff\x01"


def test_what_has_no_number_is_a_defect() -> None:
    schema = struct("a.N", ("x", INT))
    with pytest.raises(WalstreamError, match="defect"):
        StructPlan(schema, ProtoMessage("N"), [])
    with pytest.raises(WalstreamError, match="defect"):
        resolve("M", [ProtoMessage("N")])
