"""Intervals as numbers and as ISO 8601."""

import pytest

from walstream.formats.debezium import interval


def _fail(reason: str) -> None:
    raise AssertionError(reason)


@pytest.mark.parametrize(
    ("text", "number", "written"),
    [
        (
            "1 year 2 mons 3 days 04:05:06.789",
            "37091106789000",
            "P1Y2M3DT4H5M6.789S",
        ),
        ("-1 mons +2 days -00:00:01", "-2457001000000", "P0Y-1M2DT0H0M-1S"),
        ("178000000 years", "9223372036854775807", "P178000000Y0M0DT0H0M0S"),
        ("-178000000 years", "-9223372036854775808", "P-178000000Y0M0DT0H0M0S"),
        ("00:00:00", "0", "P0Y0M0DT0H0M0S"),
        ("-01:02:03.5", "-3723500000", "P0Y0M0DT-1H-2M-3.5S"),
        ("1 mon", "2629800000000", "P0Y1M0DT0H0M0S"),
        ("1 day", "86400000000", "P0Y0M1DT0H0M0S"),
        (
            "2562047788:00:54.775807",
            "9223372036854775807",
            "P0Y0M0DT2562047788H0M54.775807S",
        ),
    ],
)
def test_an_interval_is_as_in_debezium(text: str, number: str, written: str) -> None:
    assert interval.numeric(_fail)(text) == number
    assert interval.iso(_fail)(text) == f'"{written}"'


def test_an_infinite_one_is_counted() -> None:
    lost: list[str] = []
    assert interval.numeric(lost.append)("infinity") == "9223372036854775807"
    assert interval.numeric(lost.append)("-infinity") == "-9223372036854775808"
    assert interval.iso(lost.append)("-infinity") == '"-infinity"'
    assert lost == [interval.INFINITE] * 3


@pytest.mark.parametrize("text", ["", "x", "1 fortnight", "04:05", "P1Y"])
def test_other_texts_are_refused(text: str) -> None:
    for render in (interval.numeric(_fail), interval.iso(_fail)):
        with pytest.raises(ValueError, match="not an interval"):
            render(text)
