"""The LSN at which a stream ends, and the rows beside it that hold the end up.

Rows of a backfill beside the stream belong to what committed before, and each chunk
needs the stream to go on for a while: so it ends behind the LSN, when all are sent.
"""

from collections.abc import Callable, Sequence
from typing import Final

import structlog

from walstream.lsn import NEVER, Lsn, show

_NAMED: Final = 5
_log = structlog.get_logger()


class StreamEnd:
    """Of one pipeline; `reached` is for good."""

    def __init__(self, pending: Callable[[int], Sequence[str]]) -> None:
        """`pending` names so many tables whose rows are still to be sent."""
        self._pending = pending
        self._held_up = False
        self.lsn = NEVER
        self.reached = False

    def look(self, place: Lsn) -> bool:
        """Return whether the stream ends, of which all below `place` was read."""
        if place >= self.lsn and not self.reached:
            self.reached = not self._pending(1)
            if not (self.reached or self._held_up):
                self._held_up = True
                named = self._pending(_NAMED + 1)
                more = " and others" if len(named) > _NAMED else ""
                _log.info(
                    "the LSN is reached: waiting for existing rows of tables",
                    until=show(self.lsn),
                    tables=", ".join(named[:_NAMED]) + more,
                )
        return self.reached

    def look_again(self, place: Lsn) -> None:
        """See whether what held the end up is sent; on an idle server nothing comes."""
        if self._held_up:
            self.look(place)
