"""Times as people write them, and what is refused."""

from datetime import UTC, datetime, timedelta

import pytest

from walstream.cli.moment import parse

NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("2 hours ago", timedelta(hours=2)),
        ("-2h", timedelta(hours=2)),
        ("10 min ago", timedelta(minutes=10)),
        ("10m ago", timedelta(minutes=10)),
        ("1 day 3 hours ago", timedelta(days=1, hours=3)),
        ("-1h30m", timedelta(hours=1, minutes=30)),
        ("1.5 Hours  Ago", timedelta(minutes=90)),
        (" now ", timedelta()),
    ],
)
def test_an_age_counts_from_now(text: str, age: timedelta) -> None:
    assert parse(text, NOW) == NOW - age


@pytest.mark.parametrize(
    "text",
    ["2026-11-24T12:00:00Z", "2026-11-24 13:00:00+01", "2026-11-24 12:00"],
)
def test_iso_8601_is_read_too(text: str) -> None:
    assert parse(text, datetime.max.replace(tzinfo=UTC)) == NOW


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2 hours",
        "ago",
        "-h",
        "-2",
        "2 moons ago",
        "tomorrow",
        "2h ago ago",
        "999999999 weeks ago",
        "1e9h ago",
        "٢ hours ago",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse(text, NOW)
