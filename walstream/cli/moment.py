"""Times as people write them: ISO 8601, "2 hours ago", "-2h", "now"."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from walstream.formats import timestamp

FORMS: Final = '2026-11-21T12:00:00Z, "2 hours ago", -2h or now'

_UNITS: Final = {
    "s": ("s", "sec", "secs", "second", "seconds"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "d": ("d", "day", "days"),
    "w": ("w", "week", "weeks"),
}
_LENGTHS: Final = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_UNIT_OF: Final = {word: unit for unit, words in _UNITS.items() for word in words}
_PART: Final = r"[0-9]+(?:\.[0-9]+)?\s*[a-z]+"
_AGE: Final = re.compile(
    rf"-\s*(?P<minus>{_PART}(?:\s*{_PART})*)|(?P<ago>{_PART}(?:\s*{_PART})*)\s+ago",
    re.ASCII,
)
_PIECE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)", re.ASCII)


def parse(text: str, now: datetime | None = None) -> datetime:
    """Return the time that a text names; UTC where it names no offset.

    Raises ValueError for anything else.
    """
    now = datetime.now(UTC) if now is None else now
    words = " ".join(text.lower().split())
    if words == "now":
        return now
    found = _AGE.fullmatch(words)
    if found is None:
        return timestamp.parse(text)
    try:
        return now - _age(found["minus"] or found["ago"])
    except OverflowError:
        raise ValueError(f"{text!r} lies before the first year") from None


def _age(text: str) -> timedelta:
    age = timedelta()
    for number, word in _PIECE.findall(text):
        unit = _UNIT_OF.get(word)
        if unit is None:
            raise ValueError(f"{word!r} is not a unit of time")
        age += float(number) * _LENGTHS[unit]
    return age
