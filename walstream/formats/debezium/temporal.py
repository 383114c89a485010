"""Renderers of dates and times, for each precision of `time.precision.mode`.

Infinity is what Debezium makes of it; what is beyond 64 bits is infinite, and counted.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from walstream.formats.debezium.calendar_text import (
    DAY_US,
    days,
    iso_date,
    iso_moment,
    iso_time,
    micros,
    time_micros,
    zoned_time_micros,
)

Render = Callable[[str], str]
Lost = Callable[[str], None]

BEYOND: Final = "a timestamp beyond 64 bits"
INFINITE_DAYS: Final = {"infinity": -2_147_472_692, "-infinity": -2_147_472_691}
INFINITE_US: Final = {
    "infinity": 9_223_372_036_825_200_000,
    "-infinity": -9_223_372_036_832_400_000,
}
_LEAST: Final = -(1 << 63)
_GREATEST: Final = (1 << 63) - 1
_UTC: Final = "+00"
_DAY_END: Final = 10
_SECONDS_END: Final = 19
_moment: Final = datetime.fromisoformat


def date_days(text: str) -> str:
    """Write the days since 1970."""
    infinite = INFINITE_DAYS.get(text)
    return str(days(text) if infinite is None else infinite)


def date_iso(text: str) -> str:
    """Write `2020-02-29Z`."""
    infinite = INFINITE_DAYS.get(text)
    return f'"{iso_date(days(text) if infinite is None else infinite)}Z"'


def time_millis(text: str) -> str:
    """Write the milliseconds since midnight."""
    return str(time_micros(text) // 1000)


def time_in_micros(text: str) -> str:
    """Write the microseconds since midnight."""
    return str(time_micros(text))


def time_nanos(text: str) -> str:
    """Write the nanoseconds since midnight."""
    return str(time_micros(text) * 1000)


def time_iso(text: str) -> str:
    """Write `03:04:05.678901Z`; 24:00 is 00:00."""
    return f'"{iso_time(time_micros(text) % DAY_US)}Z"'


def zoned_time(text: str) -> str:
    """Write a timetz in UTC, likewise."""
    return f'"{iso_time(zoned_time_micros(text))}Z"'


def timestamp_millis(text: str) -> str:
    """Write the milliseconds since 1970."""
    infinite = INFINITE_US.get(text)
    return str((micros(text) if infinite is None else infinite) // 1000)


def timestamp_iso(text: str) -> str:
    """Write `2020-01-02T03:04:05.678901Z`."""
    infinite = INFINITE_US.get(text)
    return f'"{iso_moment(micros(text) if infinite is None else infinite)}"'


def timestamp_micros(lost: Lost) -> Render:
    """Return what writes the microseconds since 1970."""

    def render(text: str) -> str:
        infinite = INFINITE_US.get(text)
        if infinite is not None:
            return str(infinite)
        count = micros(text)
        if count > _GREATEST:
            lost(BEYOND)
            count = INFINITE_US["infinity"]
        return str(count)

    return render


def timestamp_nanos(lost: Lost) -> Render:
    """Return what writes the nanoseconds since 1970: of the years 1677 to 2262."""

    def render(text: str) -> str:
        if text in INFINITE_US:
            return str(_LEAST if text[0] == "-" else _GREATEST)
        count = micros(text) * 1000
        if not _LEAST <= count <= _GREATEST:
            lost(BEYOND)
            count = _LEAST if count < 0 else _GREATEST
        return str(count)

    return render


def zoned_timestamp(digits: int, quote: str = '"') -> Render:
    """Return what writes a timestamptz in UTC with so many decimals."""
    usual = _SECONDS_END + (digits + 1 if digits else 0) + len(_UTC)

    def render(text: str) -> str:
        if len(text) == usual and text[_DAY_END] == " " and text.endswith(_UTC):
            _moment(text)  # checked only
            return f"{quote}{text[:_DAY_END]}T{text[_DAY_END + 1 : -3]}Z{quote}"
        if text in INFINITE_US:
            return f"{quote}{text}{quote}"
        if text.endswith(_UTC) and text[_DAY_END : _DAY_END + 1] == " ":
            _moment(text)  # of the years 1 to 9999: checked only
            day, clock = text[: -len(_UTC)].split(" ")
            if digits:
                whole, _, fraction = clock.partition(".")
                clock = f"{whole}.{fraction.ljust(digits, '0')}"
            return f"{quote}{day}T{clock}Z{quote}"
        return f"{quote}{iso_moment(micros(text), digits)}{quote}"

    return render
