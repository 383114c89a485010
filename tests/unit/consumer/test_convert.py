"""PostgreSQL's texts as Python values; against a real server: tests/integration."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, NewType
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumer.convert import CONVERTERS, Unfit, converter, optional

Cents = NewType("Cents", int)
INDIA = timezone(timedelta(hours=5, minutes=30))


class Mood(Enum):
    SAD = "sad"


HELD: list[tuple[Any, str, object]] = [
    (str, "", ""),
    (object, "x", "x"),
    (bool, "t", True),
    (bool, "f", False),
    (int, "-9223372036854775808", -(2**63)),
    (Cents, "5", 5),
    (float, "1e+20", 1e20),
    (float, "-Infinity", float("-inf")),
    (Decimal, "-1.500", Decimal("-1.500")),
    (Decimal, "Infinity", Decimal("Infinity")),
    (date, "2024-02-29", date(2024, 2, 29)),
    (datetime, "2024-07-05 01:02:03.4", datetime(2024, 7, 5, 1, 2, 3, 400_000)),  # noqa: DTZ001
    (datetime, "2024-07-05 01:02:03+00", datetime(2024, 7, 5, 1, 2, 3, tzinfo=UTC)),
    (
        datetime,
        "2024-07-05 01:02:03+05:30",
        datetime(2024, 7, 5, 1, 2, 3, tzinfo=INDIA),
    ),
    (time, "01:02:03.000004", time(1, 2, 3, 4)),
    (time, "01:02:03+05:30", time(1, 2, 3, tzinfo=INDIA)),
    (timedelta, "00:00:00", timedelta()),
    (timedelta, "-1 days +02:03:00", timedelta(days=-1, hours=2, minutes=3)),
    (timedelta, "-00:00:00.5", timedelta(microseconds=-500_000)),
    (timedelta, "3 days", timedelta(days=3)),
    (timedelta, "100:00:01", timedelta(hours=100, seconds=1)),
    (
        UUID,
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        UUID(int=0xA0EEBC999C0B4EF8BB6D6BB9BD380A11),
    ),
    (bytes, "\\x", b""),
    (bytes, "\\x00ff", b"\x00\xff"),
    (dict, '{"a": [1, null]}', {"a": [1, None]}),
    (dict[str, int], '{"a": 1}', {"a": 1}),
    (list, "[1, 2.5]", [1, 2.5]),
    (Mood, "sad", Mood.SAD),
    (list[int], "{}", []),
    (list[int], "{1,-2}", [1, -2]),
    (list[int], "[0:1]={1,2}", [1, 2]),
    (list[int | None], "{1,NULL}", [1, None]),
    (list[str], r'{"NULL","a,b","q\"\\","",x y}', ["NULL", "a,b", 'q"\\', "", "x y"]),
    (list[list[int]], "{{1,2},{3,4}}", [[1, 2], [3, 4]]),
    (list[list[str | None]], '{{"}",NULL},{"{",b}}', [["}", None], ["{", "b"]]),
]

UNHELD: list[tuple[Any, str, str]] = [
    (bool, "true", "boolean"),
    (int, "1.5", "whole"),
    (int, "1_000", "whole"),
    (int, " 1", "whole"),
    (int, "\u0661", "whole"),
    (float, "1e400", "too large"),
    (float, "infinity", "not a number"),
    (Decimal, "sNaN", "not a number"),
    (Decimal, "$1.00", "not a number"),
    (date, "infinity", "infinite"),
    (date, "0044-03-15 BC", "before the year 1"),
    (date, "10000-01-01", "after the year 9999"),
    (date, "2024-07-05 00:00:00", "not a date"),
    (datetime, "-infinity", "infinite"),
    (datetime, "4713-01-01 00:00:00+00 BC", "before the year 1"),
    (datetime, "294276-12-31 23:59:59.999999+00", "after the year 9999"),
    (datetime, "2024-07-05", "not a timestamp"),
    (time, "24:00:00", "24:00:00"),
    (time, "24:00:00-15:59:59", "24:00:00"),
    (time, "noon", "not a time"),
    (timedelta, "infinity", "infinite"),
    (timedelta, "1 year", "no fixed length"),
    (timedelta, "1 mon 2 days", "no fixed length"),
    (timedelta, "", "not an interval"),
    (timedelta, "soon", "not an interval"),
    (bytes, "abc", "bytea"),
    (bytes, "\\x00 00", "bytea"),
    (dict, "[1]", "not an object"),
    (list, "{}", "not an array"),
    (list[int], "1", "not an array"),
    (list[int], "{1", "not an array"),
    (list[int], '{"a}', "not an array"),
    (list[int], '{"1"2}', "not an array"),
    (list[int], "{1,NULL}", "NULL"),
    (list[int], "{{1}}", "more dimensions"),
    (list[list[int]], "{1}", "fewer dimensions"),
    (list[list[int]], "1", "not an array"),
]


@pytest.mark.parametrize(("kind", "text", "value"), HELD)
def test_a_text_becomes_the_value(kind: Any, text: str, value: object) -> None:
    made = converter(kind)(text)
    assert made == value
    assert type(made) is type(value)
    assert getattr(made, "tzinfo", None) == getattr(value, "tzinfo", None)


@pytest.mark.parametrize(("kind", "text", "reason"), UNHELD)
def test_what_does_not_fit_says_why(kind: Any, text: str, reason: str) -> None:
    with pytest.raises(Unfit, match=re.escape(reason)):
        converter(kind)(text)


@pytest.mark.parametrize("kind", [complex, set[int], int | str, dict[str, int] | int])
def test_an_unknown_type_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match="no conversion"):
        converter(optional(kind)[0])


def test_optional_types_are_told_apart() -> None:
    assert optional(int) == (int, False)
    assert optional(int | None) == (int, True)
    assert optional(Any) == (Any, True)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from([*CONVERTERS, list[int], list[list[str]]]), st.text())
def test_any_text_converts_or_does_not_fit(kind: Any, text: str) -> None:
    try:
        converter(kind)(text)
    except ValueError:  # Unfit, or the type's own
        pass
    except (OverflowError, ArithmeticError, RecursionError):
        pass


@given(st.lists(st.text() | st.none()))
def test_any_array_of_texts_is_read_back(texts: list[str | None]) -> None:
    def quoted(text: str | None) -> str:
        if text is None:
            return "NULL"
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    array = "{" + ",".join(map(quoted, texts)) + "}"
    assert converter(list[str | None])(array) == texts
