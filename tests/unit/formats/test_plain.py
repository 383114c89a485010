"""Values of any driver as JSON."""

import enum
import ipaddress
import json
import math
from collections import UserDict
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from walstream.formats.plain import plain


class Colour(enum.Enum):
    RED = "r"
    NIGHT = date(2026, 1, 2)


class Level(enum.IntEnum):
    HIGH = 3


class Word(enum.StrEnum):
    ONE = "one"


class Point(NamedTuple):
    x: int
    y: Decimal


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("no text")


class NoZone(tzinfo):
    def utcoffset(self, _: datetime | None) -> timedelta:
        raise LookupError("no such zone")

    dst = utcoffset

    def tzname(self, _: datetime | None) -> str:
        return "none"


class Whole(int): ...


@pytest.mark.parametrize("value", [None, True, False, 0, -7, 10**300, "", "é\ud800"])
def test_what_json_has_stays_as_it_is(value: object) -> None:
    assert plain(value) is value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.5, 1.5),
        (-0.0, -0.0),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (Decimal("12.50"), "12.50"),
        (Decimal(-3), "-3"),
        (Decimal("NaN"), "NaN"),
        (Decimal("sNaN"), "sNaN"),
        (Decimal("-Infinity"), "-Infinity"),
        (Decimal("0E-10"), "0.0000000000"),
        (Decimal("-1E-7"), "-0.0000001"),
        (Decimal("1E+3"), "1E+3"),
        (Decimal("1E-999999"), "1E-999999"),
        (Decimal("1" * 60 + ".5"), "1" * 60 + ".5"),
        (datetime(2026, 1, 2, 3, 4, 5, 600), "2026-01-02T03:04:05.000600"),  # noqa: DTZ001
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00+00:00"),
        (
            datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=-3.5))),
            "2026-01-02T00:00:00-03:30",
        ),
        (date(9999, 12, 31), "9999-12-31"),
        (time(1, 2, 3, 4), "01:02:03.000004"),
        (timedelta(hours=838, minutes=59, seconds=59), "838:59:59"),
        (-timedelta(hours=26, microseconds=1), "-26:00:00.000001"),
        (timedelta(0), "00:00:00"),
        (timedelta.min, "-23999999976:00:00"),
        (b"\x00\xff", "AP8="),
        (bytearray(b""), ""),
        (memoryview(b"abc")[::2], "YWM="),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ([1, (2, None)], [1, [2, None]]),
        (Point(1, Decimal("2.0")), [1, "2.0"]),
        ({"b", "a", "c"}, ["a", "b", "c"]),
        (frozenset({10, 9}), [10, 9]),  # by their text
        ({"a": b"x", 1: {None: 2}}, {"a": "eA==", "1": {"null": 2}}),
        ({True: 1, (1, 2): 2, 1.5: 3}, {"true": 1, "[1, 2]": 2, "1.5": 3}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (UserDict(a=math.nan), {"a": "NaN"}),
        (Colour.RED, "r"),
        (Colour.NIGHT, "2026-01-02"),
        (Level.HIGH, 3),
        (Word.ONE, "one"),
        ({Level.HIGH: 1}, {"3": 1}),
        (ipaddress.ip_address("::1"), "::1"),
        (ipaddress.ip_network("10.0.0.0/8"), "10.0.0.0/8"),
        (Fraction(1, 3), "1/3"),
        (Whole(5), 5),
        (Mute(), "<Mute>"),
        ([Mute()], ["<Mute>"]),
        (datetime(2026, 1, 2, tzinfo=NoZone()), "<datetime>"),
        (10**4000, 10**4000),
    ],
)
def test_any_other_value_has_a_form(value: object, expected: object) -> None:
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected) or isinstance(value, int)
    json.dumps(found, allow_nan=False)


def test_a_number_longer_than_python_writes_is_text() -> None:
    assert plain(10**5000) == hex(10**5000)


def test_what_holds_itself_ends() -> None:
    loop: list[Any] = []
    loop.append(loop)
    json.dumps(plain(loop))


def test_what_is_nested_deep_becomes_text_down_there() -> None:
    deep: Any = 1
    for _ in range(50_000):
        deep = [deep]
    json.dumps(plain(deep))
    shallow: Any = 1
    for _ in range(99):
        shallow = [shallow]
    assert plain(shallow) == shallow


def test_a_released_view_stalls_nothing() -> None:
    view = memoryview(b"abc")
    view.release()
    assert plain(view) == "<memoryview>"
