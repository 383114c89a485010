"""The transactions that changed a table before a chunk of it was requested.

Their rows are no longer known, so each snapshot that rows come from has to see them.
Those with a number when the table is begun are waited for, once: they were streamed
unnoticed, or never. Of later ones the number is kept until some snapshot has seen it: a
commit is in the stream before others see it, as long as a synchronous standby takes.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Final, Protocol

from walstream.sources.postgres.incremental.chunk import (
    Visibility,
)
from walstream.sources.postgres.incremental.threads import Submit

MOST: Final = 100_000  # then it is asked which of them are seen by now
MOST_OF_ALL: Final = 1_000_000
_LOOK_EVERY_S: Final = 0.2


class TransactionQueries(Protocol):
    """Queries to the database; each call may block."""

    @property
    def mark(self) -> Callable[[], int]: ...

    @property
    def seen(self) -> Callable[[float], Visibility]: ...


class Past:
    """One table's, from its begin on; called at the ends of transactions."""

    def __init__(
        self,
        server: TransactionQueries,
        submit: Submit,
        most: int = MOST,
        most_of_all: int = MOST_OF_ALL,
    ) -> None:
        self._server = server
        self._submit = submit
        self._most = most
        self._most_of_all = most_of_all
        self._passed: set[int] = set()
        self._marking: Future[int] | None = None
        self._mark = 0  # all below have to end
        self._looking: Future[Visibility] | None = None
        self._base: Visibility | None = None  # by which all of those had ended
        self.waits = False  # for transactions that run

    def begin(self) -> None:
        """Wait for all that have a number now; those that passed are among them."""
        self._passed.clear()
        self._base = self._marking = self._looking = None

    def note(self, xid: int) -> None:
        """Note who spoke of the table."""
        self._passed.add(xid)

    def before(self) -> frozenset[int]:
        """Name who spoke of it until now, as far as anybody may not be seen."""
        return frozenset(self._passed)

    def later(self, xid: int) -> bool:
        """Return whether it ended after all of those that were waited for."""
        return self._base is not None and not self._base.sees(xid)

    @property
    def full(self) -> bool:
        """Return whether they are too many to be known: begin again."""
        return len(self._passed) > self._most_of_all

    def ready(self) -> bool:
        """Return whether all that were waited for have ended, and were looked at."""
        if self._base is None and self._marking is None:
            self._marking = self._submit(self._server.mark)
        if self._marking is not None and self._looking is None:
            if not self._marking.done():
                return False
            self._mark = self._marking.result()
            self._look(0.0)
        if self._looking is not None:
            return self._looked(self._looking)
        if len(self._passed) > self._most:
            self._look(_LOOK_EVERY_S)
        return True

    def _look(self, later_s: float) -> None:
        self._looking = self._submit(self._server.seen, later_s)

    def _looked(self, looking: Future[Visibility]) -> bool:
        if not looking.done():
            return False
        seen, self._looking = looking.result(), None
        self.forget(seen)
        self.waits = self._base is None and not seen.sees_all_below(self._mark)
        if self.waits:
            self._look(_LOOK_EVERY_S)
            return False
        if self._base is None:
            self._base, self._marking = seen, None
        return True

    def forget(self, seen: Visibility) -> None:
        """Forget whom this snapshot sees, and so each later one."""
        self._passed = {xid for xid in self._passed if not seen.sees(xid)}

    def is_seen(self, before: Iterable[int], seen: Visibility) -> bool:
        """Return whether a snapshot sees all of these; if not, look again later."""
        self.forget(seen)
        if all(map(seen.sees, before)):
            return True
        self.waits = True
        self._look(_LOOK_EVERY_S)
        return False
