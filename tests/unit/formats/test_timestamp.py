"""Commit times as formats print them."""

import pytest

from walstream.formats.timestamp import moment, of, parse, read, rfc3339, sql_timestamp

SECOND = 1_000_000
DAY = 86_400 * SECOND
TIMES = [
    (0, "2000-01-01T00:00:00Z", "2000-01-01 00:00:00.0"),
    (1, "2000-01-01T00:00:00.000001Z", "2000-01-01 00:00:00.000001"),
    (500_000, "2000-01-01T00:00:00.5Z", "2000-01-01 00:00:00.5"),
    (-500_000, "1999-12-31T23:59:59.5Z", "1999-12-31 23:59:59.5"),
    (59 * DAY + 10 * SECOND, "2000-02-29T00:00:10Z", "2000-02-29 00:00:10.0"),
]


@pytest.mark.parametrize(("time", "event", "tungsten"), TIMES)
def test_a_commit_time_is_printed_with_the_decimals_it_needs(
    time: int, event: str, tungsten: str
) -> None:
    assert rfc3339(time) == event
    assert sql_timestamp(time) == tungsten
    assert read(event) == time


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-11-21T06:28:02.019132519Z", "2026-11-21T06:28:02.019132Z"),
        ("2026-11-21T06:28:02.5+02:00", "2026-11-21T04:28:02.5Z"),
    ],
)
def test_other_forms_of_rfc_3339_are_read(text: str, same: str) -> None:
    assert rfc3339(read(text)) == same


@pytest.mark.parametrize("text", ["", "2026-11-21", "2026-11-21T06:28:02", "infinity"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="o"):
        read(text)


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (2**63 - 1, "9999-12-31T23:59:59.999999Z"),
        (-(2**63), "0001-01-01T00:00:00Z"),
    ],
)
def test_a_clock_beyond_all_years_stops_nothing(time: int, text: str) -> None:
    assert rfc3339(time) == text


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-11-21 12:00:00+01", "2026-11-21T11:00:00Z"),
        ("2026-11-21T12:00:00.5", "2026-11-21T12:00:00.5Z"),
        (" 2026-11-21 ", "2026-11-21T00:00:00Z"),
        ("20261121T120000Z", "2026-11-21T12:00:00Z"),
    ],
)
def test_people_may_leave_the_offset_out(text: str, same: str) -> None:
    found = of(parse(text))
    assert rfc3339(found) == same
    assert of(moment(found)) == found
    with pytest.raises(ValueError, match="16B3748"):
        parse("16B3748")


def test_no_time_is_beyond_what_a_datetime_holds() -> None:
    assert moment(1 << 63).year == 9999
    assert moment(-(1 << 63)).year == 1
