"""Dates and times as numbers, over all years that PostgreSQL has."""

from datetime import date, timedelta

import pytest

from walstream.formats.debezium import calendar_text


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("1970-01-01", 0),
        ("2020-02-29", 18321),
        ("0001-01-01", -719162),
        ("0001-12-31 BC", -719163),
        ("0044-03-15 BC", -735160),  # Debezium's
        ("4713-01-01 BC", -2440550),  # 38 days behind the first of PostgreSQL's
        ("5874897-12-31", 2145042905),  # likewise
        ("10000-01-01", 2932897),
    ],
)
def test_a_date_is_a_number_of_days_and_back(text: str, days: int) -> None:
    assert calendar_text.days(text) == days
    year, month, day = calendar_text.civil(days)
    shown, era = (1 - year, " BC") if year <= 0 else (year, "")
    assert f"{shown:04}-{month:02}-{day:02}{era}" == text


def test_days_are_those_of_python() -> None:
    for number in range(-800_000, 2_900_000, 997):
        found = calendar_text.civil(number)
        assert calendar_text.civil_days(*found) == number
        if found[0] > 0:
            assert date(*found) - date(1970, 1, 1) == timedelta(number)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01 00:00:00", 0),
        ("2020-01-02 03:04:05.678901", 1577934245678901),
        ("2020-01-02 03:04:05.5", 1577934245500000),
        ("1969-12-31 23:59:59.999999", -1),
        ("0044-03-15 12:00:00 BC", -63517780800000000),
        ("294276-12-31 23:59:59.999999", 9224318015999999999),
        ("2020-01-02 03:04:05.678901+01", 1577930645678901),
        ("2020-01-02 03:04:05-03:30", 1577946845000000),
        ("0044-03-15 12:00:00+00 BC", -63517780800000000),
        ("1800-01-01 00:00:00+00:53:28", -5364662400_000000 - 3208_000000),
    ],
)
def test_a_timestamp_is_a_number_of_microseconds(text: str, micros: int) -> None:
    assert calendar_text.micros(text) == micros


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("00:00:00", 0),
        ("23:59:59.999999", 86399999999),
        ("24:00:00", 86400000000),
        ("12:34:56.7", 45296700000),
    ],
)
def test_a_time_is_a_number_of_microseconds(text: str, micros: int) -> None:
    assert calendar_text.time_micros(text) == micros


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("12:34:56.123456+02:30", "10:04:56.123456"),
        ("00:30:00+01", "23:30:00"),
        ("23:00:00-02", "01:00:00"),
        ("24:00:00+00", "00:00:00"),
        ("12:00:00+00:00:01", "11:59:59"),
    ],
)
def test_a_time_with_an_offset_is_told_in_utc(text: str, time: str) -> None:
    assert calendar_text.iso_time(calendar_text.zoned_time_micros(text)) == time


@pytest.mark.parametrize(
    ("micros", "digits", "text"),
    [
        (0, 0, "1970-01-01T00:00:00Z"),
        (1577934245678900, 0, "2020-01-02T03:04:05.6789Z"),
        (1577934245678900, 6, "2020-01-02T03:04:05.678900Z"),
        (1577934245000000, 3, "2020-01-02T03:04:05.000Z"),
        (-63517780800000000, 0, "-0043-03-15T12:00:00Z"),
        (9224318015999999999, 0, "+294276-12-31T23:59:59.999999Z"),
        (-62167219200000000, 0, "0000-01-01T00:00:00Z"),
    ],
)
def test_a_moment_is_written_as_by_java(micros: int, digits: int, text: str) -> None:
    assert calendar_text.iso_moment(micros, digits) == text


@pytest.mark.parametrize(
    "text", ["", "infinity", "2020-13-01", "2020-01-02T", "20-01-02", "2020-01-02 BC x"]
)
def test_other_texts_are_refused(text: str) -> None:
    for read in (
        calendar_text.days,
        calendar_text.micros,
        calendar_text.time_micros,
        calendar_text.zoned_time_micros,
        calendar_text.zone_seconds,
    ):
        with pytest.raises(ValueError, match=r"."):
            read(text)
