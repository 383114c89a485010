"""Values that a type holds, and those that it does not."""

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pytest

from walstream.formats.encodings.row.column import ColumnKind, RowColumnType
from walstream.formats.encodings.row.forms import form_of

MOMENT = datetime(1969, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("boolean", False, False),
        ("int16", -32768, -32768),
        ("double", float("inf"), "Infinity"),
        ("time", timedelta(hours=-838, minutes=-59), -3020340000000),
        ("time", time(0, 0, 1), 1_000_000),
        ("timestamp", MOMENT, -1),
        ("zoned", MOMENT.replace(tzinfo=UTC), "1969-12-31T23:59:59.999999Z"),
        ("string", Decimal("1.50"), "1.50"),
        ("json", None, "null"),
    ],
)
def test_a_value_of_the_type(kind: ColumnKind, value: Any, expected: Any) -> None:
    found = form_of(RowColumnType(kind)).fit(value)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("boolean", 1),
        ("bytes", "x"),
        ("date", MOMENT),
        ("double", 1),
        ("int16", 32768),
        ("int64", True),
        ("string", 5),
        ("time", time(0, 0, 1, tzinfo=UTC)),
        ("time", timedelta(days=106_751_992)),
        ("timestamp", MOMENT.replace(tzinfo=UTC)),
        ("zoned", MOMENT),
    ],
)
def test_a_value_of_another(kind: ColumnKind, value: Any) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        form_of(RowColumnType(kind)).fit(value)


@pytest.mark.parametrize(
    "value",
    [*map(Decimal, ("1.5", "1.500", "99999.00", "-0.00", "NaN", "1E+2")), 1],
)
def test_a_decimal_that_would_not_come_back(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        form_of(RowColumnType("decimal", 6, 2)).fit(value)


def test_what_stands_in_the_row_for_a_value_that_is_elsewhere() -> None:
    assert form_of(RowColumnType("string")).instead([1, "é"]) == '[1,"\\u00e9"]'
    assert form_of(RowColumnType("date")).instead("0000-00-00") == 0
    finite = form_of(RowColumnType("double"), finite=True)
    with pytest.raises(ValueError, match=r"^$"):
        finite.fit(float("nan"))
