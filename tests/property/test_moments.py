"""Any age, however it is spelled, is the same time; any text is a time or refused."""

import contextlib
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from walstream.cli.moment import parse

NOW = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)
UNITS = {
    "weeks": ("w", "week", "weeks"),
    "days": ("d", "day", "days"),
    "hours": ("h", "hr", "hours", "HOURS"),
    "minutes": ("m", "min", "minutes"),
    "seconds": ("s", "sec", "seconds"),
}


@st.composite
def ages(draw: st.DrawFn) -> tuple[str, timedelta]:
    """Draw an age and one of its spellings."""
    units = draw(st.lists(st.sampled_from(list(UNITS)), min_size=1, max_size=5))
    texts: list[str] = []
    age = timedelta()
    for unit in units:
        number = draw(st.integers(0, 500))
        age += timedelta(**{unit: number})
        space = draw(st.sampled_from(["", " ", "  "]))
        texts.append(f"{number}{space}{draw(st.sampled_from(UNITS[unit]))}")
    joined = draw(st.sampled_from(["", " "])).join(texts)
    return draw(st.sampled_from([f"-{joined}", f"{joined} ago"])), age


@given(ages())
def test_every_spelling_of_an_age_is_that_age(drawn: tuple[str, timedelta]) -> None:
    text, age = drawn
    assert parse(text, NOW) == NOW - age


@given(st.datetimes(timezones=st.just(UTC)), st.sampled_from(["T", " "]))
def test_an_iso_time_comes_back(time: datetime, separator: str) -> None:
    assert parse(time.isoformat(separator), NOW) == time


@given(st.text() | st.from_regex(r"-?[0-9. ]*[a-z ]*(ago)?", fullmatch=True))
def test_any_other_text_is_refused_with_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert parse(text, NOW).tzinfo is not None
