"""Types of columns: those that keep what a text says, and texts."""

import pytest

from walstream.formats.debezium.pg_type import PgType
from walstream.formats.encodings.op.schema import op_options
from walstream.formats.encodings.op.types import OpTypes, doubt_of

NUMERIC_6_2 = 393_222
NUMERIC_3_MINUS_2 = 198_658


def _silent(_: str) -> None:
    """Count nothing."""


def test_most_types_hold_each_text() -> None:
    found = OpTypes(op_options("app", "", "avro")).of(PgType(23), _silent)
    assert doubt_of(found) is None


def of(oid: int, name: str = "", modifier: int = -1, element: int = 0) -> str:
    types = OpTypes(op_options("app", "", "avro"))
    item = PgType(element, "", modifier) if element else None
    found = types.of(PgType(oid, name, modifier, (), item), _silent)
    schema = found.schema
    if schema.items is not None:
        assert schema.items.optional
    return schema.name.rpartition(".")[2] or schema.type


@pytest.mark.parametrize(
    ("oid", "wanted"),
    [
        *((23, "int32"), (17, "bytes"), (1082, "Date"), (1184, "ZonedTimestamp")),
        *((790, "string"), (1186, "string"), (1266, "string"), (1562, "string")),
        *((1700, "string"), (628, "string")),
    ],
)
def test_a_type_that_keeps_no_text_is_one(oid: int, wanted: str) -> None:
    assert of(oid) == wanted


def test_a_numeric_with_digits_is_a_decimal() -> None:
    assert of(1700, modifier=NUMERIC_6_2) == "Decimal"
    assert of(1700, modifier=NUMERIC_3_MINUS_2) == "string"


def test_arrays_and_extensions() -> None:
    assert of(1007, element=23) == "array"
    assert of(1231, element=1700) == "array"
    assert of(1187, element=1186) == "string"
    assert of(17_001, "hstore") == "map"
    assert of(17_002, "sparsevec") == "string"
    assert of(17_003, "pair") == "string"


@pytest.mark.parametrize(
    ("pg", "sure", "doubtful"),
    [
        (PgType(1700, "", NUMERIC_6_2), ["1.50", "-0.01"], ["NaN"]),
        (
            PgType(1114),
            ["2020-02-29 03:04:05.678901", "infinity", "0044-03-15 00:00:00 BC"],
            ["294276-12-31 23:59:59.999999"],
        ),
        (
            PgType(1007, "", -1, (), PgType(23)),
            ["{}", "{1,NULL}"],
            ["{{1},{2}}", "[0:0]={1}"],
        ),
        (
            PgType(1009, "", -1, (), PgType(25)),
            ['{a,"b c","NULL",NULL,""}', '{"{}"}'],
            ['{{"{}"}}', "{{NULL}}"],
        ),
        (
            PgType(1231, "", NUMERIC_6_2, (), PgType(1700, "", NUMERIC_6_2)),
            ["{1.50,NULL}"],
            ["{1.50,NaN}"],
        ),
        (PgType(17_005, "vector"), ["[1,2.5]", "[-1e-10]"], ["[1e+06]"]),
    ],
)
def test_some_texts_do_not_come_back(
    pg: PgType, sure: list[str], doubtful: list[str]
) -> None:
    found = OpTypes(op_options("app", "", "avro")).of(pg, _silent)
    doubts = doubt_of(found)
    assert doubts is not None
    assert [doubts(text) for text in sure] == [False] * len(sure)
    assert [doubts(text) for text in doubtful] == [True] * len(doubtful)
