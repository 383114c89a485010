"""Values of Connect read back as texts, and those that do not come back."""

import json
from typing import Any

import pytest

from walstream.formats.debezium.connect_value import text_of
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.pg_type import ELEMENTS, PgType
from walstream.formats.debezium.types import ConnectTypes


def back(
    oid: int, text: str, modifier: int = -1, name: str = "", **options: Any
) -> str | None:
    """Write a text and read it again, by its schema."""
    element = PgType(ELEMENTS[oid], "", modifier) if oid in ELEMENTS else None
    pg = PgType(oid, name, modifier, (), element)
    found = ConnectTypes(DebeziumOptions("app", **options)).of(pg, lambda _: None)
    assert found is not None
    return text_of(json.loads(found.render(text)), json.loads(found.schema.json()))


@pytest.mark.parametrize(
    ("oid", "modifier", "text"),
    [
        (16, -1, "t"),
        (20, -1, "-9223372036854775808"),
        (25, -1, 'any "text"'),
        (17, -1, "\\x00ff10"),
        (700, -1, "1.5"),
        (701, -1, "1e+15"),
        (701, -1, "123456789012345"),
        (701, -1, "0.0001"),
        (701, -1, "1e-05"),
        (701, -1, "-0"),
        (701, -1, "2.2250738585072014e-308"),
        (701, -1, "NaN"),
        (701, -1, "-Infinity"),
        (1700, -1, "123456789012345678901234567890.123456789"),
        (1700, 327686, "-12.30"),
        (1700, 327686, "0.00"),
        (1700, 198658, "12300"),
        (1700, -1, f"-{'9' * 5000}.{'1' * 5000}"),
        (1560, 3, "001"),
        (1082, -1, "2020-02-29"),
        (1082, -1, "0044-03-15 BC"),
        (1082, -1, "infinity"),
        (1083, -1, "23:59:59.999999"),
        (1083, 3, "12:34:56.789"),
        (1083, -1, "24:00:00"),
        (1266, -1, "10:04:56.1+00"),
        (1114, -1, "2020-01-02 03:04:05.678901"),
        (1114, 3, "2020-01-02 03:04:05.678"),
        (1114, -1, "0044-03-15 12:00:00 BC"),
        (1114, -1, "-infinity"),
        (1184, -1, "2020-01-02 03:04:05.6+00"),
        (1184, -1, "0044-03-15 12:00:00+00 BC"),
        (1184, -1, "infinity"),
        (600, -1, "(1.5,2)"),
        (1007, -1, "{1,NULL,3}"),
        (1009, -1, '{"a b",NULL,"c\\"d"}'),
        (1231, 327686, "{1.50,2.25}"),
        (1115, -1, '{"2020-01-01 00:00:00.5"}'),
    ],
)
def test_a_text_comes_back_by_its_schema(oid: int, modifier: int, text: str) -> None:
    assert back(oid, text, modifier) == text


@pytest.mark.parametrize("mode", ["isostring", "nanoseconds", "microseconds"])
def test_times_come_back_in_other_modes(mode: str) -> None:
    for oid, text in (
        (1082, "2020-02-29"),
        (1083, "03:04:05.67"),
        (1114, "2020-01-02 03:04:05.678901"),
        (1114, "infinity"),
        (1082, "infinity"),
    ):
        assert back(oid, text, time=mode) == text


def test_extensions_types_come_back() -> None:
    for name, text in (
        ("vector", "[1,2.5]"),
        ("sparsevec", "{1:1.5,3:2}/5"),
        ("geometry", "0101000020E6100000000000000000F03F0000000000000040"),
    ):
        assert back(16500, text, name=name) == text
    assert back(16500, '"a"=>"1", "b"=>NULL', name="hstore", hstore="map") == (
        '"a"=>"1", "b"=>NULL'
    )


@pytest.mark.parametrize(
    ("oid", "modifier", "text", "other"),
    [
        (1560, 1, "1", "t"),
        (1562, 10, "10101", "0000010101"),
        (1562, -1, "0010", "10"),
        (1186, -1, "1 year 00:00:01", "8766:00:01"),
        (1186, -1, "-01:30:00.5", "-01:30:00.5"),
        (1007, -1, "[0:1]={7,8}", "{7,8}"),
        (790, -1, "$1,234.56", "1234.56"),
        (1700, -1, "1.50", "1.5"),
    ],
)
def test_what_does_not_come_back_is_known(
    oid: int, modifier: int, text: str, other: str
) -> None:
    assert back(oid, text, modifier) == other


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "t"),
        (5, "5"),
        (1.5, "1.5"),
        ("AJY=", "AJY="),
        ([1, None], "{1,NULL}"),
        ({"scale": 1, "value": "Dw=="}, "1.5"),
        ({"wkb": "AQE=", "srid": None}, "0101"),
        ({"a": "1"}, '"a"=>"1"'),
    ],
)
def test_without_a_schema_a_value_is_what_it_looks_like(
    value: object, text: str | None
) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("x", {"type": "bytes"}),
        (
            "??",
            {
                "name": "org.apache.kafka.connect.data.Decimal",
                "parameters": {"scale": "2"},
            },
        ),
        (5, {"name": "io.debezium.time.ZonedTimestamp"}),
        ({}, {"name": "io.debezium.data.VariableScaleDecimal"}),
        (object(), {}),
    ],
)
def test_other_shapes_are_refused(value: object, schema: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        text_of(value, schema)


def test_a_map_is_an_hstore_whatever_its_keys_are() -> None:
    schema = {"type": "map", "keys": {"type": "string"}, "values": {"type": "string"}}
    for pairs in ({"scale": "1", "value": "x"}, {"wkb": "a", "srid": None}):
        text = text_of(pairs, schema)
        assert text == ", ".join(
            f'"{key}"=>' + ("NULL" if value is None else f'"{value}"')
            for key, value in pairs.items()
        )
