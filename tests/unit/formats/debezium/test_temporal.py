"""Dates and times in each mode."""

from collections.abc import Callable

import pytest

from walstream.formats.debezium import temporal


def _fail(reason: str) -> None:
    raise AssertionError(reason)


@pytest.mark.parametrize(
    ("render", "text", "written"),
    [
        (temporal.date_days, "2020-02-29", "18321"),
        (temporal.date_days, "infinity", "-2147472692"),
        (temporal.date_days, "-infinity", "-2147472691"),
        (temporal.date_iso, "2020-02-29", '"2020-02-29Z"'),
        (temporal.date_iso, "infinity", '"-5877611-06-21Z"'),
        (temporal.date_iso, "-infinity", '"-5877611-06-22Z"'),
        (temporal.date_iso, "5874897-12-31", '"+5874897-12-31Z"'),
        (temporal.time_millis, "12:34:56.789", "45296789"),
        (temporal.time_in_micros, "24:00:00", "86400000000"),
        (temporal.time_nanos, "00:00:00.000001", "1000"),
        (temporal.time_iso, "12:34:56.500", '"12:34:56.5Z"'),
        (temporal.time_iso, "24:00:00", '"00:00:00Z"'),
        (temporal.zoned_time, "12:34:56.123456+02:30", '"10:04:56.123456Z"'),
        (temporal.timestamp_millis, "2020-01-02 03:04:05.678", "1577934245678"),
        (temporal.timestamp_millis, "1969-12-31 23:59:59.9999", "-1"),
        (temporal.timestamp_millis, "infinity", "9223372036825200"),
        (temporal.timestamp_iso, "2020-01-02 03:04:05.5", '"2020-01-02T03:04:05.5Z"'),
        (temporal.timestamp_iso, "infinity", '"+294247-01-10T04:00:25.2Z"'),
        (temporal.timestamp_micros(_fail), "1970-01-01 00:00:00.000001", "1"),
        (temporal.timestamp_micros(_fail), "infinity", "9223372036825200000"),
        (temporal.timestamp_micros(_fail), "-infinity", "-9223372036832400000"),
        (
            temporal.timestamp_micros(_fail),
            "4714-11-24 00:00:00 BC",
            "-210866803200000000",
        ),
        (temporal.timestamp_nanos(_fail), "1970-01-01 00:00:00.000001", "1000"),
        (temporal.timestamp_nanos(_fail), "infinity", "9223372036854775807"),
        (temporal.timestamp_nanos(_fail), "-infinity", "-9223372036854775808"),
        (temporal.zoned_timestamp(6), "infinity", '"infinity"'),
        (
            temporal.zoned_timestamp(6),
            "2020-01-02 03:04:05.1+00",
            '"2020-01-02T03:04:05.100000Z"',
        ),
        (
            temporal.zoned_timestamp(6),
            "2020-01-02 03:04:05.678901+00",
            '"2020-01-02T03:04:05.678901Z"',
        ),
        (
            temporal.zoned_timestamp(0),
            "2020-01-02 03:04:05+00",
            '"2020-01-02T03:04:05Z"',
        ),
        (
            temporal.zoned_timestamp(3),
            "2020-01-02 03:04:05+02",
            '"2020-01-02T01:04:05.000Z"',
        ),
        (
            temporal.zoned_timestamp(6),
            "0044-03-15 12:00:00+00 BC",
            '"-0043-03-15T12:00:00.000000Z"',
        ),
        (
            temporal.zoned_timestamp(6),
            "12020-01-02 03:04:05+00",
            '"+12020-01-02T03:04:05.000000Z"',
        ),
    ],
)
def test_values_are_those_of_debezium(
    render: Callable[[str], str], text: str, written: str
) -> None:
    assert render(text) == written


def test_what_is_beyond_64_bits_is_infinite_and_counted() -> None:
    lost: list[str] = []
    micros, nanos = temporal.timestamp_micros, temporal.timestamp_nanos
    late = "294276-12-31 23:59:59.999999"
    assert micros(lost.append)(late) == "9223372036825200000"
    assert nanos(lost.append)("2262-04-12 00:00:00") == "9223372036854775807"
    assert nanos(lost.append)("1677-09-21 00:00:00") == "-9223372036854775808"
    assert lost == [temporal.BEYOND] * 3


@pytest.mark.parametrize(
    "text", ["", "x", "2020-01-02", "2020-13-02 03:04:05+00", "2020-01-02T03:04:05+00"]
)
def test_other_texts_are_refused(text: str) -> None:
    for digits in (0, 6):
        with pytest.raises(ValueError, match=r"."):
            temporal.zoned_timestamp(digits)(text)
