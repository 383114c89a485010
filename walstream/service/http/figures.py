"""Texts of the page's figures: pure."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from walstream.telemetry.human import SIZE_UNITS

NONE: Final = "-"
_TIMES: Final = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
_SIZES: Final = tuple((size, name) for name, size in SIZE_UNITS.items() if size > 1)
_WHOLE: Final = 10.0  # from here on no digit follows the point


def duration(seconds: float | None) -> str:
    """Write a time: 4 ms, 0.2 s, 14 s, 3.5 min."""
    if seconds is None:
        return NONE
    for unit, name in _TIMES:
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}"
    if 0.0 < seconds < 0.1:  # noqa: PLR2004
        return f"{max(seconds * 1000, 1):.0f} ms"
    return f"{seconds:.0f} s" if seconds >= _WHOLE else f"{seconds:.1f} s"


def size(count: float | None) -> str:
    """Write bytes: 0 B, 12 KiB, 1.4 GiB."""
    if count is None:
        return NONE
    for unit, name in _SIZES:
        if count >= unit:
            number = count / unit
            return (
                f"{number:.0f} {name}" if number >= _WHOLE else f"{number:.1f} {name}"
            )
    return f"{count:.0f} B"


def number(count: int | None) -> str:
    """Write it with its thousands apart."""
    return NONE if count is None else f"{count:,}"


def rate(per_s: float | None) -> str:
    """Write a rate without its unit."""
    if per_s is None:
        return NONE
    return f"{per_s:.1f}" if 0.0 < per_s < _WHOLE else f"{per_s:,.0f}"


def moment(at: datetime | None) -> str:
    """Write a time of day in UTC, with its date."""
    return NONE if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def plural(count: int, one: str) -> str:
    """Count things by their name."""
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Name some, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
