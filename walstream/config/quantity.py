"""Durations and byte sizes as people write them: "20s", "64MiB".

A number without a unit is refused, whatever the key's name suggests: `5` has been read
as seconds, minutes and milliseconds by too many. Only 0 needs none. Sizes are binary
and say so, because "MB" means 1000² to Kafka's admins and 1024² to PostgreSQL's.
"""

import re
from decimal import Decimal
from typing import Final

from walstream.telemetry.human import (
    SIZE_UNITS,
)

DURATION_UNITS: Final = {  # in seconds, largest first
    "d": Decimal(86400),
    "h": Decimal(3600),
    "min": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("0.001"),
}
LONGEST_S: Final = 3650 * 86400
LARGEST_BYTES: Final = (1 << 63) - 1  # what an LSN distance or LMDB can still hold

_QUANTITY: Final = re.compile(r"([0-9]{1,19})(\.[0-9]{1,3})? ?([A-Za-z]+)")
_DURATION_WANTED: Final = 'write a number and one of ms, s, min, h, d, as in "20s"'
_SIZE_WANTED: Final = 'write a number and one of B, KiB, MiB, GiB, TiB, as in "64MiB"'


def duration(written: object) -> float:
    """Seconds of "20s", "1min", "500ms"; ValueError says what would be right."""
    number, unit = _split(written, _DURATION_WANTED)
    if unit is None:
        return 0.0
    if unit not in DURATION_UNITS:
        raise ValueError(f"is not a duration: {_DURATION_WANTED}")
    seconds = float(number * DURATION_UNITS[unit])
    if seconds > LONGEST_S:
        raise ValueError("is longer than ten years: write at most 3650d")
    return seconds


def byte_size(written: object) -> int:
    """Bytes of "64MiB"; ValueError says what would be right."""
    number, unit = _split(written, _SIZE_WANTED)
    if unit is None:
        return 0
    if unit not in SIZE_UNITS:
        raise ValueError(f"is not a size: {_SIZE_WANTED}")
    size = number * SIZE_UNITS[unit]
    if size != int(size):
        raise ValueError(f"is not a whole number of bytes: {_SIZE_WANTED}")
    if size > LARGEST_BYTES:
        raise ValueError(
            "is more than a 64-bit number holds: write less than 8388608TiB"
        )
    return int(size)


def show_duration(seconds: float) -> str:
    """Write it so that `duration` reads the same number again."""
    exact = Decimal(repr(seconds))
    if not exact:
        return "0"
    for unit, factor in DURATION_UNITS.items():
        if exact % factor == 0:
            return f"{(exact / factor).normalize():f}{unit}"
    return f"{(exact / DURATION_UNITS['ms']).normalize():f}ms"


def show_size(size: int) -> str:
    """Write it so that `byte_size` reads the same number again."""
    if not size:
        return "0"
    unit, factor = next(
        (unit, factor) for unit, factor in SIZE_UNITS.items() if size % factor == 0
    )
    return f"{size // factor}{unit}"


def _split(written: object, wanted: str) -> tuple[Decimal, str | None]:
    """Return number and unit; no unit for a zero."""
    if isinstance(written, int | float) and not isinstance(written, bool):
        if written == 0:
            return Decimal(0), None
        raise ValueError(f"has no unit: {wanted}")
    if not isinstance(written, str):
        raise ValueError(wanted)  # noqa: TRY004 - pydantic reports a ValueError alone
    if written == "0":
        return Decimal(0), None
    found = _QUANTITY.fullmatch(written)
    if not found:
        raise ValueError(wanted)
    return Decimal(found[1] + (found[2] or "")), found[3]
