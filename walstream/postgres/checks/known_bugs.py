"""Known bugs of logical decoding, by the minor version that fixed them.

From PostgreSQL's release notes. Majors that are not named never had the bug.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from walstream.errors import Repair
from walstream.finding import Finding, warning


@dataclass(frozen=True, slots=True)
class Bug:
    what: str
    mended: dict[int, int]  # major: the first minor without it
    came: dict[int, int] | None = None  # major: the first minor with it; all before


BUGS: Final = (
    Bug(
        "changes may be lost or damaged when a table or a publication is altered "
        "during a running transaction",
        {15: 13, 16: 9, 17: 5},
    ),
    Bug(
        "decoding takes unbounded memory, or fails, when tables are altered during "
        "long transactions",
        {15: 14, 16: 10, 17: 6},
        {15: 13, 16: 9, 17: 5},
    ),
    Bug(
        "a checkpoint may invalidate a slot while it is being created",
        {15: 16, 16: 12, 17: 8, 18: 2},
    ),
)


def look(version: int) -> Iterator[Finding]:
    """Name what a server of this version (150012 is 15.12) still has."""
    major, minor = divmod(version, 10000)
    found = [bug for bug in BUGS if _has(bug, major, minor)]
    if found:
        best = max(bug.mended[major] for bug in found)
        yield warning(
            "known-bugs",
            "server",
            f"PostgreSQL {major}.{minor} has known bugs of logical decoding",
            "; ".join(bug.what for bug in found),
            Repair(
                then=f"update to {major}.{best} or later: a minor update needs no dump"
            ),
        )


def _has(bug: Bug, major: int, minor: int) -> bool:
    if minor >= bug.mended.get(major, 0):
        return False
    return bug.came is None or minor >= bug.came[major]
