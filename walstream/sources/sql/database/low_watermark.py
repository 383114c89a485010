"""Low watermark: missing keys can still come while their transactions are open.

A key that is missing was drawn by a transaction that was open when it was missed, or by
one that rolled back. So each look lists the transactions that may have drawn one, and
remembers since when each is known. A gap that was noted under `mark.next` is settled
when a later look returns a `low` that is at least as high: whoever was open then has
ended. What is settled, and still missing when it is read once more after that look,
never comes.
"""

from dataclasses import dataclass

from sqlalchemy import Connection

from walstream.errors import NO_REPAIR
from walstream.sources.sql.database.open_transactions import (
    Lacking,
    Open,
    is_nameless,
    open_transactions,
)
from walstream.sources.sql.database.shape import SqlTableShape
from walstream.telemetry import runtime


@dataclass(frozen=True, slots=True)
class Mark:
    """Numbers of looks, in microseconds: they grow, also over restarts."""

    next: int  # stands beside a gap that is noted after this look
    low: int  # a gap that has a `next` up to this is settled


class Marks:
    """The looks at one table; `lacking` and `repair` say why one saw nothing."""

    def __init__(self, shape: SqlTableShape) -> None:
        self.lacking = ""
        self.repair = NO_REPAIR
        self._shape = shape
        self._since: dict[str, int] = {}  # the first number under which it may be open
        self._last = 0  # the number of the last look; 0: there was none
        self._listed = 0  # of the last one whose list was fresh

    def look(self, connection: Connection) -> Mark | None:
        """List what is open now, after rows were read; None: nothing can be known."""
        found = open_transactions(connection, self._shape)
        if isinstance(found, Lacking):
            self.lacking, self.repair = found.words, found.repair
            return None
        self.lacking, self.repair = "", NO_REPAIR
        self._last = max(self._last + 1, runtime.time_ns() // 1000)
        low = self._low(found) if found.fresh else 0
        return Mark(next=self._last + 1, low=max(low, 0))

    def _low(self, found: Open) -> int:
        # not in the list before: it began later. Before the first list, anytime
        began = self._listed + 1 if self._listed else 0
        self._since = {
            name: 0 if is_nameless(name) else self._since.get(name, began)
            for name in found.names
        }
        self._listed = self._last
        return min(self._since.values(), default=self._last) - found.slack_us
