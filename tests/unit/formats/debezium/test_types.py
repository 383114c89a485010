"""Each type in each mode: its schema and its value."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from walstream.formats.debezium.connect_type import ConnectType
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.pg_type import ELEMENTS, PgType
from walstream.formats.debezium.types import UNKNOWN_LABEL, ConnectTypes

_TIME: Final = "io.debezium.time."
_KAFKA: Final = "org.apache.kafka.connect.data."


def _fail(reason: str) -> None:
    raise AssertionError(reason)


def found(
    oid: int,
    name: str = "",
    modifier: int = -1,
    lost: Callable[[str], None] = _fail,
    **options: Any,
) -> ConnectType | None:
    element = None
    if oid in ELEMENTS:
        element = PgType(ELEMENTS[oid], "", modifier)
    elif name.startswith("_"):
        element = PgType(oid - 1, name[1:], modifier)
    pg = PgType(oid, name, modifier, (), element)
    return ConnectTypes(DebeziumOptions("app", **options)).of(pg, lost)


def made(oid: int, name: str = "", modifier: int = -1, **options: Any) -> ConnectType:
    one = found(oid, name, modifier, **options)
    assert one is not None
    return one


@pytest.mark.parametrize(
    ("mode", "modifier", "date", "time", "timestamp"),
    [
        ("adaptive", -1, f"{_TIME}Date", f"{_TIME}MicroTime", f"{_TIME}MicroTimestamp"),
        ("adaptive", 6, f"{_TIME}Date", f"{_TIME}MicroTime", f"{_TIME}MicroTimestamp"),
        ("adaptive", 4, f"{_TIME}Date", f"{_TIME}MicroTime", f"{_TIME}MicroTimestamp"),
        ("adaptive", 3, f"{_TIME}Date", f"{_TIME}Time", f"{_TIME}Timestamp"),
        ("adaptive", 0, f"{_TIME}Date", f"{_TIME}Time", f"{_TIME}Timestamp"),
        (
            "adaptive_time_microseconds",
            0,
            f"{_TIME}Date",
            f"{_TIME}MicroTime",
            f"{_TIME}Timestamp",
        ),
        ("connect", -1, f"{_KAFKA}Date", f"{_KAFKA}Time", f"{_KAFKA}Timestamp"),
        ("isostring", 3, f"{_TIME}IsoDate", f"{_TIME}IsoTime", f"{_TIME}IsoTimestamp"),
        (
            "microseconds",
            0,
            f"{_TIME}Date",
            f"{_TIME}MicroTime",
            f"{_TIME}MicroTimestamp",
        ),
        ("nanoseconds", 0, f"{_TIME}Date", f"{_TIME}NanoTime", f"{_TIME}NanoTimestamp"),
    ],
)
def test_times_have_the_precision_of_the_mode(
    mode: str, modifier: int, date: str, time: str, timestamp: str
) -> None:
    schemas = [made(oid, "", modifier, time=mode).schema for oid in (1082, 1083, 1114)]
    assert [schema.name for schema in schemas] == [date, time, timestamp]
    kinds = {
        date: "string" if "Iso" in date else "int32",
        time: "int32" if time.endswith((".Time",)) else "int64",
        timestamp: "int64",
    }
    for schema in schemas:
        wanted = "string" if "Iso" in schema.name else kinds[schema.name]
        assert schema.type == wanted


def test_nanoseconds_are_a_thousand_times_as_many() -> None:
    assert made(1083, time="nanoseconds").render("00:00:01") == "1000000000"
    stamp = made(1114, time="nanoseconds").render("1970-01-01 00:00:01")
    assert stamp == "1000000000"


@pytest.mark.parametrize(
    ("decimal", "kind", "name", "value", "empty"),
    [
        ("precise", "bytes", f"{_KAFKA}Decimal", '"AJY="', '"AA=="'),
        ("string", "string", "", '"1.50"', '"0.00"'),
        ("double", "double", "", "1.5", "0.0"),
    ],
)
def test_decimals_follow_their_mode(
    decimal: str, kind: str, name: str, value: str, empty: str
) -> None:
    one = made(1700, "numeric", 327686, decimal=decimal)
    assert (one.schema.type, one.schema.name) == (kind, name)
    assert (one.render("1.50"), one.empty) == (value, empty)
    coin = made(790, "money", decimal=decimal)
    assert (coin.schema.type, coin.render("$1.50"), coin.empty) == (kind, value, empty)


def test_digits_of_money_are_an_option() -> None:
    assert made(790, money_digits=0).schema.parameters == (("scale", "0"),)


@pytest.mark.parametrize(
    ("oid", "modifier", "kind", "length"),
    [
        (1560, 1, "boolean", ""),
        (1560, 3, "bytes", "3"),
        (1562, 10, "bytes", "10"),
        (1562, 1, "boolean", ""),
        (1562, -1, "bytes", "2147483647"),
    ],
)
def test_bits_have_their_length(
    oid: int, modifier: int, kind: str, length: str
) -> None:
    schema = made(oid, "", modifier).schema
    assert schema.type == kind
    assert dict(schema.parameters).get("length", "") == length


def test_an_extensions_types_are_known_by_their_names() -> None:
    names = {
        "citext": ("string", ""),
        "isbn": ("string", ""),
        "ltree": ("string", "io.debezium.data.Ltree"),
        "hstore": ("string", "io.debezium.data.Json"),
        "geometry": ("struct", "io.debezium.data.geometry.Geometry"),
        "geography": ("struct", "io.debezium.data.geometry.Geography"),
        "vector": ("array", "io.debezium.data.DoubleVector"),
        "halfvec": ("array", "io.debezium.data.FloatVector"),
        "sparsevec": ("struct", "io.debezium.data.SparseDoubleVector"),
    }
    for name, (kind, schema) in names.items():
        one = made(16500, name)
        assert (one.schema.type, one.schema.name) == (kind, schema)
    assert made(16500, "geometry").schema.optional  # also where it is NOT NULL


def test_a_built_in_type_is_not_known_by_such_a_name() -> None:
    assert found(9999, "hstore") is None


def test_an_enum_names_its_labels_and_counts_others() -> None:
    lost: list[str] = []
    pg = PgType(16500, "mood", -1, ("sad", "ok"))
    one = ConnectTypes(DebeziumOptions("app")).of(pg, lost.append)
    assert one is not None
    assert one.schema.parameters == (("allowed", "sad,ok"),)
    assert [one.render(text) for text in ("ok", 'n"ew')] == ['"ok"', '"n\\"ew"']
    assert lost == [UNKNOWN_LABEL]


@pytest.mark.parametrize(
    ("oid", "name", "items", "text", "json"),
    [
        (1007, "_int4", "int32?", "{1,NULL}", "[1,null]"),
        (1231, "_numeric", "struct?", "{1.5}", '[{"scale":1,"value":"Dw=="}]'),
        (1561, "_bit", "boolean?", "{1,0}", "[true,false]"),
        (3643, "_tsvector", "string", "{\"'a'\"}", "[\"'a'\"]"),
        (1016, "_int8", "int64?", "{{1},{2}}", "[1,2]"),
        (16501, "_citext", "string?", '{"A b"}', '["A b"]'),
        (16501, "_vector", "array", '{"[1,2]"}', "[[1.0,2.0]]"),
    ],
)
def test_arrays_have_items_of_their_element(
    oid: int, name: str, items: str, text: str, json: str
) -> None:
    one = made(oid, name, 1 if name == "_bit" else -1)
    inner = one.schema.items
    assert inner is not None
    assert one.schema.type == "array"
    assert inner.type + "?" * inner.optional == items
    assert (one.render(text), one.empty) == (json, "[]")


@pytest.mark.parametrize("oid", [791, 1003, 1187, 1563, 143, 1017, 2201])
def test_arrays_that_debezium_has_not_are_left_out(oid: int) -> None:
    assert found(oid) is None
    assert found(oid, unknown=True) is None


@pytest.mark.parametrize(
    ("oid", "name"),
    [
        (628, "line"),
        (2205, "regclass"),
        (3220, "pg_lsn"),
        (16500, "pair"),
        (4451, "int4multirange"),
    ],
)
def test_other_types_are_left_out_or_opaque(oid: int, name: str) -> None:
    assert found(oid, name) is None
    one = made(oid, name, unknown=True)
    assert (one.schema.type, one.empty) == ("bytes", '""')
    hexadecimal = made(oid, name, unknown=True, binary="hex")
    assert (hexadecimal.schema.type, hexadecimal.render("x")) == ("string", '"78"')


def test_an_array_of_another_type_is_opaque_item_by_item() -> None:
    assert found(16501, "_pair") is None
    one = made(16501, "_pair", unknown=True)
    assert one.render('{"(1,x)",NULL}') == '["KDEseCk=",null]'


def test_what_nothing_names_is_a_text() -> None:
    for oid in (16500, 2277):
        one = made(oid)
        assert (one.schema.type, one.render("x"), one.text) == ("string", '"x"', True)


def test_what_was_not_sent_has_a_placeholder_in_texts_alone() -> None:
    placeholder = '"__debezium_unavailable_value"'
    for oid in (25, 114, 142, 3614, 1043):
        assert made(oid).unavailable == placeholder
    for oid in (1700, 16, 600, 1231, 1115):
        assert made(oid).unavailable is None
    assert made(1700, decimal="string").unavailable == placeholder
    assert made(17, binary="hex").unavailable == placeholder
    assert made(17).unavailable == '"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="'
    assert (
        made(16500, "hstore", hstore="map").unavailable
        == f"{{{placeholder}:{placeholder}}}"
    )
    assert made(1009).unavailable == f"[{placeholder}]"
    for mode in ("connect", "isostring"):
        assert made(1182, time=mode).unavailable is None


def test_postgis_puts_a_colon_between_the_items_of_an_array() -> None:
    one = made(16501, "_geometry")
    assert one.delimiter == ":"
    assert made(16502, "_citext").delimiter == ","
