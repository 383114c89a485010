"""Dates and times of PostgreSQL's text as numbers, and as Java's ISO 8601.

Years reach from 4713 BC to 5874897. PostgreSQL writes a year BC with the era behind
it, Java with a sign; a year beyond 9999 has a plus there.
"""

import re
from datetime import date, datetime
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - a text without a zone is none
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_DAY_S: Final = 86_400
DAY_US: Final = _DAY_S * 1_000_000
_USUAL: Final = 26  # `2020-01-02 03:04:05.678901`
_DAY: Final = 10  # characters of a date with a year of four digits

_DATE: Final = re.compile(r"([0-9]{4,7})-([0-9]{2})-([0-9]{2})( BC)?")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?")
_ZONE: Final = re.compile(r"([+-])([0-9]{2})(?::([0-9]{2}))?(?::([0-9]{2}))?")
_MOMENT: Final = re.compile(
    rf"([0-9]{{4,7}}-[0-9]{{2}}-[0-9]{{2}}) ({_TIME.pattern})({_ZONE.pattern})?( BC)?"
)


def days(text: str) -> int:
    """Return the days since 1970-01-01 of a date; raise ValueError for what is none."""
    if len(text) == len("2020-01-02"):
        return date.fromisoformat(text).toordinal() - _EPOCH_DAY
    found = _DATE.fullmatch(text)
    if found is None:
        raise ValueError("not a date")
    year = int(found[1])
    return civil_days(1 - year if found[4] else year, int(found[2]), int(found[3]))


def civil_days(year: int, month: int, day: int) -> int:
    """Count days since 1970-01-01 in the Gregorian calendar, whatever the year."""
    year -= month <= 2  # noqa: PLR2004 - a year begins in March
    era, of_era = divmod(year, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return (
        era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    )


def civil(count: int) -> tuple[int, int, int]:
    """Return the year, month and day of days since 1970-01-01."""
    era, of_era = divmod(count + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9  # noqa: PLR2004
    day = of_year - (153 * shifted + 2) // 5 + 1
    return year + era * 400 + (month <= 2), month, day  # noqa: PLR2004


def micros(text: str) -> int:
    """Return the microseconds since 1970 of a timestamp, UTC where it has a zone.

    Raises ValueError for what is none; an infinite one is none.
    """
    if len(text) <= _USUAL and text[_DAY : _DAY + 1] == " ":
        try:
            delta = datetime.fromisoformat(text) - _EPOCH
        except (TypeError, ValueError):  # of another year, or with a zone
            pass
        else:
            return (
                delta.days * _DAY_S + delta.seconds
            ) * 1_000_000 + delta.microseconds
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise ValueError("not a timestamp")
    day, clock, *_, zone = found.groups()[:7]
    era = found.groups()[-1] or ""
    offset = zone_seconds(zone) if zone else 0
    return days(day + era) * DAY_US + time_micros(clock) - offset * 1_000_000


def time_micros(text: str) -> int:
    """Return the microseconds since midnight; 24:00:00 is one of them."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError("not a time")
    hours, minutes, seconds, fraction = found.groups()
    whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
    return whole * 1_000_000 + (int(fraction.ljust(6, "0")) if fraction else 0)


def zone_seconds(text: str) -> int:
    """Return the seconds of an offset from UTC."""
    found = _ZONE.fullmatch(text)
    if found is None:
        raise ValueError("not an offset")
    sign, hours, minutes, seconds = found.groups()
    count = (int(hours) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    return -count if sign == "-" else count


def zoned_time_micros(text: str) -> int:
    """Return the microseconds since midnight, UTC, of a time with an offset."""
    place = max(text.rfind("+"), text.rfind("-"))
    offset = zone_seconds(text[place:]) * 1_000_000
    return (time_micros(text[:place]) - offset) % DAY_US


def iso_date(count: int) -> str:
    """Write a date of days since 1970."""
    year, month, day = civil(count)
    if year > 9999:  # noqa: PLR2004 - digits of a year
        return f"+{year}-{month:02}-{day:02}"
    written = f"{year:04}" if year >= 0 else f"-{-year:04}"
    return f"{written}-{month:02}-{day:02}"


def iso_time(count: int, digits: int = 0) -> str:
    """Write microseconds since midnight; 0: as many decimals as there are."""
    seconds, fraction = divmod(count, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    whole = f"{hour % 24:02}:{minute:02}:{second:02}"
    if digits:
        return f"{whole}.{fraction:06}"[: len(whole) + 1 + digits]
    decimals = f"{fraction:06}".rstrip("0")
    return f"{whole}.{decimals}" if decimals else whole


def iso_moment(count: int, digits: int = 0) -> str:
    """Write microseconds since 1970, UTC."""
    day, rest = divmod(count, DAY_US)
    return f"{iso_date(day)}T{iso_time(rest, digits)}Z"
