"""A commit time, in microseconds since 2000-01-01 UTC: as text, and back."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# what a datetime can hold; no commit is of another year
_FIRST: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND


def rfc3339(microseconds: int) -> str:
    """Write `2026-11-21T06:28:02.5Z`, with as many decimals as it needs."""
    whole, decimals = _parts(microseconds, "T")
    return f"{whole}.{decimals}Z" if decimals else f"{whole}Z"


def sql_timestamp(microseconds: int) -> str:
    """Write `2017-07-13 15:30:37.0`, UTC, with one decimal at least."""
    whole, decimals = _parts(microseconds, " ")
    return f"{whole}.{decimals or '0'}"


def _parts(microseconds: int, separator: str) -> tuple[str, str]:
    written = moment(microseconds)
    whole = written.replace(microsecond=0, tzinfo=None).isoformat(separator)
    return whole, f"{written.microsecond:06}".rstrip("0")


def of(time: datetime) -> int:
    """Count what a datetime with an offset is."""
    return (time - _EPOCH) // _MICROSECOND


def moment(microseconds: int) -> datetime:
    """Return it as Python's own, held within what that can be."""
    return _EPOCH + timedelta(microseconds=min(max(microseconds, _FIRST), _LAST))


def read(text: str) -> int:
    """Read RFC 3339; raise ValueError for anything else. Nanoseconds are cut off."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("no offset from UTC")
    return of(found)


def parse(text: str) -> datetime:
    """Read ISO 8601 as people write it; UTC, where it names no offset.

    Raises ValueError for anything else.
    """
    found = datetime.fromisoformat(text.strip())
    return found if found.tzinfo else found.replace(tzinfo=UTC)
