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
    moment = _EPOCH + timedelta(microseconds=min(max(microseconds, _FIRST), _LAST))
    whole = moment.replace(microsecond=0, tzinfo=None).isoformat(separator)
    return whole, f"{moment.microsecond:06}".rstrip("0")


def read(text: str) -> int:
    """Read RFC 3339; raise ValueError for anything else. Nanoseconds are cut off."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("no offset from UTC")
    return (moment - _EPOCH) // _MICROSECOND
