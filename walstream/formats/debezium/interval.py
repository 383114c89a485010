"""interval: an average number of microseconds, or ISO 8601."""

import re
from collections.abc import Callable
from typing import Final

Render = Callable[[str], str]
Lost = Callable[[str], None]

INFINITE: Final = "an infinite interval"
_DAYS_OF_MONTH: Final = 365.25 / 12.0
_LEAST: Final = -(1 << 63)
_GREATEST: Final = (1 << 63) - 1
_FORM: Final = re.compile(
    r"(?:([+-]?[0-9]+) years?\s*)?(?:([+-]?[0-9]+) mons?\s*)?"
    r"(?:([+-]?[0-9]+) days?\s*)?"
    r"(?:([+-]?)([0-9]+):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?)?"
)
_INFINITE: Final = frozenset({"infinity", "-infinity"})


def _parts(text: str) -> tuple[int, int, int, int, int, int]:
    """Return years, months, days, hours, minutes and microseconds."""
    found = _FORM.fullmatch(text)
    if found is None or not text:
        raise ValueError("not an interval")
    years, months, days, sign, hours, minutes, seconds, fraction = found.groups()
    factor = -1 if sign == "-" else 1
    rest = int(seconds or 0) * 1_000_000 + int((fraction or "0").ljust(6, "0"))
    return (
        int(years or 0),
        int(months or 0),
        int(days or 0),
        factor * int(hours or 0),
        factor * int(minutes or 0),
        factor * rest,
    )


def numeric(lost: Lost) -> Render:
    """Return what writes microseconds: a month has 30.4375 days, as in Debezium.

    It counts with doubles, as Debezium does: the last digits may not be exact.
    """

    def render(text: str) -> str:
        if text in _INFINITE:
            lost(INFINITE)
            return str(_LEAST if text[0] == "-" else _GREATEST)
        years, months, days, hours, minutes, micros = _parts(text)
        total = (years * 12 + months) * _DAYS_OF_MONTH + days
        seconds = micros / 1_000_000
        count = int(((((total * 24 + hours) * 60) + minutes) * 60 + seconds) * 1e6)
        return str(min(max(count, _LEAST), _GREATEST))

    return render


def iso(lost: Lost) -> Render:
    """Return what writes `P1Y2M3DT4H5M6.789S`; an infinite one is PostgreSQL's text."""

    def render(text: str) -> str:
        if text in _INFINITE:
            lost(INFINITE)
            return f'"{text}"'
        years, months, days, hours, minutes, micros = _parts(text)
        sign = "-" if micros < 0 else ""
        seconds, fraction = divmod(abs(micros), 1_000_000)
        decimals = f"{fraction:06}".rstrip("0")
        last = f"{sign}{seconds}.{decimals}" if decimals else f"{sign}{seconds}"
        return f'"P{years}Y{months}M{days}DT{hours}H{minutes}M{last}S"'

    return render
