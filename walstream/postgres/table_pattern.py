"""Patterns of `tables` that match nothing: most are misspelt."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Final

from walstream.records.router import matches

WHY: Final = (
    "patterns are case-sensitive and match `schema.table`; tables created later are "
    "included"
)
_NEAR: Final = 0.8  # of 1: how like a name must be to be meant


def unmatched(patterns: Iterable[str], names: Collection[str]) -> dict[str, str]:
    """Return of each pattern that matches none what may be meant."""
    said = {}
    for pattern in patterns:
        if not any(matches(pattern, name) for name in names):
            near = _nearest(pattern, names)
            said[pattern] = "matches no table" + (
                f"; did you mean {near!r}?" if near else ""
            )
    return said


def _nearest(pattern: str, names: Iterable[str]) -> str | None:
    """Find the name, or the schema's whole, that it is most like."""
    folded = {name.casefold(): name for name in names}
    folded |= {
        f"{schema.casefold()}.*": f"{schema}.*"
        for schema in {name.partition(".")[0] for name in names}
    }
    near = get_close_matches(pattern.casefold(), folded, n=1, cutoff=_NEAR)
    return folded[near[0]] if near else None
