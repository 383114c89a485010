"""Texts of several names, and of sizes, in one line."""

from collections.abc import Collection, Mapping
from typing import Final

SIZE_UNITS: Final = {  # in bytes, largest first
    "TiB": 1 << 40,
    "GiB": 1 << 30,
    "MiB": 1 << 20,
    "KiB": 1 << 10,
    "B": 1,
}


_SAID: Final = 3


def few(names: Collection[str]) -> str:
    """Return the first names in order, and how many more there are."""
    said = sorted(names)[:_SAID]
    more = len(names) - len(said)
    return ", ".join(said) + (f" and {more} more" if more else "")


def tables(names: Collection[str]) -> str:
    """Return tables as the subject of a finding."""
    if len(names) == 1:
        return f"table {next(iter(names))}"
    return f"{len(names)} tables"


def which(names: Collection[str]) -> str:
    """Return them behind a colon, where the subject does not."""
    return f": {few(names)}" if len(names) > 1 else ""


def because(reasons: Mapping[str, str]) -> str:
    """Return the reason of each; of one alone the subject is its name."""
    if len(reasons) == 1:
        return next(iter(reasons.values()))
    return few([f"{name}: {reason}" for name, reason in reasons.items()])


def size(number: int) -> str:
    """Write a number of bytes: 1.5 GiB."""
    for unit, number_of_bytes in SIZE_UNITS.items():
        if number >= number_of_bytes > 1:
            return f"{number / number_of_bytes:.1f} {unit}"
    return f"{number} B"
