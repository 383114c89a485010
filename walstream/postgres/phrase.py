"""How several names are said in one line."""

from collections.abc import Collection
from typing import Final

_SAID: Final = 3


def few(names: Collection[str]) -> str:
    """Say the first names in order, and how many more there are."""
    said = sorted(names)[:_SAID]
    more = len(names) - len(said)
    return ", ".join(said) + (f" and {more} more" if more else "")


def tables(names: Collection[str]) -> str:
    """Say them as the subject of a finding."""
    if len(names) == 1:
        return f"table {next(iter(names))}"
    return f"{len(names)} tables"
