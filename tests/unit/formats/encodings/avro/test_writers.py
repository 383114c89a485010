"""A text of each type, in Avro as in JSON; what JSON has no form for is null."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.oracles.avro_values import said
from tests.unit.formats.debezium.test_types import made
from walstream.formats.debezium.connect_type import NO_NULL, ConnectType
from walstream.formats.debezium.numeric import NO_NUMBER
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.pg_type import PgType
from walstream.formats.debezium.types import ConnectTypes
from walstream.formats.encodings.avro import primitive
from walstream.formats.encodings.avro.writers import bits_of, whole, writer

ZONED = [
    "2026-01-02 03:04:05.678901+00",
    "2026-01-02 03:04:05+00",
    "2026-01-02 03:04:05.6+02:30",
    "12026-01-02 03:04:05.678+00",
    "0044-03-15 12:00:00+00 BC",
    "infinity",
    "-infinity",
]


def _none(reason: str) -> None:
    raise AssertionError(reason)


def _of(pg: PgType, lost: Callable[[str], None]) -> ConnectType:
    found = ConnectTypes(DebeziumOptions("app")).of(pg, lost)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("oid", "modifier", "text"),
    [
        (21, -1, "-32768"),
        (23, -1, "2147483647"),
        (1082, -1, "5874897-12-31"),
        (1083, 3, "24:00:00"),
        (701, -1, "NaN"),
        (700, -1, "-Infinity"),
        (1700, -1, "-12.50"),
        (1700, -1, "0.000"),
        (1700, -1, "128"),
        (1700, 327_686, "-0.01"),
        (1700, 327_686, "128.00"),
        (790, -1, "-$1,234.56"),
        (17, -1, "\\x00ff"),
        (1560, 3, "100"),
        (1266, -1, "01:02:03+04"),
        (1231, -1, "{1.5,NULL}"),
        (1022, -1, "{NaN,-0}"),
    ],
)
def test_it_says_what_json_says(oid: int, modifier: int, text: str) -> None:
    found = made(oid, "", modifier)
    written = writer(found, _none)(text)
    assert written is not None
    assert said(found, written) == said(found, None, found.render(text))


@pytest.mark.parametrize(
    ("oid", "text"),
    [
        *(
            (20, "x"),
            (20, "9223372036854775808"),
            (20, "1_0"),
            (20, "٣"),
            (21, "32768"),
        ),
        *((23, "-2147483649"), (16, "true"), (700, "1e300"), (701, "x"), (17, "00")),
        *((1700, "x"), (1082, "x"), (600, "x"), (1007, "{1"), (2950, "\ud800")),
    ],
)
def test_what_is_no_text_of_the_type_is_refused(oid: int, text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whoever refuses it
        writer(made(oid), _none)(text)


def test_the_most_frequent_types_have_functions_of_their_own() -> None:
    assert [bits_of(made(oid)) for oid in (21, 23, 20, 26, 25)] == [15, 31, 63, 63, 0]
    assert writer(made(25), _none) is writer(made(1043), _none)


@pytest.mark.parametrize("bits", [15, 31, 63])
def test_a_whole_number_has_as_many_bits_as_its_type(bits: int) -> None:
    for number in (0, -1, (1 << bits) - 1, -1 << bits):
        assert whole(str(number), bits) == primitive.long(number)
    for number in (1 << bits, (-1 << bits) - 1):
        with pytest.raises(ValueError, match="not an integer of this size"):
            whole(str(number), bits)
    for text in ("", "-", "+1", " 1", "1_0", "\u0661", "\u00b2"):
        with pytest.raises(ValueError, match="not an integer"):
            whole(text, bits)


@pytest.mark.parametrize(
    ("pg", "options", "texts"),
    [
        (PgType(1184), {}, ZONED),
        (PgType(1184, "", 0), {}, ZONED),
        (PgType(1184, "", 3), {}, ZONED),
        (PgType(1700), {"decimal": "string"}, ["1.50", "-3", "NaN", "-Infinity"]),
    ],
)
def test_a_text_without_quotes_is_that_of_json(
    pg: PgType, options: dict[str, Any], texts: list[str]
) -> None:
    found = ConnectTypes(DebeziumOptions("app", **options)).of(pg, _none)
    assert found is not None
    assert found.bare is not None
    for text in texts:
        assert found.render(text) == f'"{found.bare(text)}"'
        assert writer(found, _none)(text) == primitive.text(found.bare(text))


def test_a_number_that_is_none_is_null_and_counted() -> None:
    lost: list[str] = []
    for pg in (PgType(1700), PgType(1700, "", 327_686)):
        assert writer(_of(pg, lost.append), _none)("NaN") is None
    assert lost == [NO_NUMBER] * 2


def test_a_null_that_an_item_cannot_be_is_empty_and_counted() -> None:
    lost: list[str] = []
    element = PgType(16500, "mood", -1, ("sad", "ok"))
    pg = PgType(16501, "_mood", -1, (), element)
    write = writer(_of(pg, _none), lost.append)
    assert write("{sad,NULL}") == b"\x04\x06sad\x00\x00"
    assert lost == [NO_NULL]
