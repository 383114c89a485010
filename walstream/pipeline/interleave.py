"""Rows of a backfill, sent between two transactions of the stream as one of their own.

In the ledger they follow the transaction that ended, so the position stays below until
they are delivered. The stream continues when all of them are sent.
"""

from collections import deque
from collections.abc import Callable, Sequence

from walstream.errors import WalstreamError
from walstream.lsn import Lsn
from walstream.op import ReplicationOp, postgres_time
from walstream.pipeline.fanout import Fanout
from walstream.pipeline.ledger import Shares
from walstream.pipeline.ports import OldRows
from walstream.telemetry import runtime


class Interleave:
    """Rows that one pipeline lets in; none without `beside`."""

    def __init__(
        self,
        fanout: Fanout,
        beside: OldRows | None,
        admits: Callable[[Lsn], bool] = lambda _lsn: True,
    ) -> None:
        """`admits` returns whether sinks may get what was committed by then."""
        self._fanout = fanout
        self._beside = beside
        self._admits = admits
        self._ops: deque[ReplicationOp] = deque()
        self._transaction: Shares | None = None
        self._place: Lsn = 0
        self._due = False
        self.moved = False  # was anything let in in this turn?
        self.note: Callable[[ReplicationOp], None] | None = None  # of the ops to come

    @property
    def open(self) -> bool:
        """Return whether a backfill provides rows."""
        return self._beside is not None

    def pending(self, most: int) -> Sequence[str]:
        """Name so many tables whose rows are still to be let in."""
        return self._beside.pending(most) if self._beside is not None else ()

    @property
    def waiting(self) -> bool:
        """Return whether rows are left that had no room."""
        return self._transaction is not None

    def begin_turn(self, *, closed: bool) -> None:
        """Allow rows for this turn, unless closed: a drain starts nothing new."""
        self._due = not closed
        self.moved = False

    def let_in(self, place: Lsn) -> bool:
        """Send rows at the end of a transaction; False: the next op waits.

        At most once a turn: more would delay the stream.
        """
        beside = self._beside
        if beside is None or not self._due:
            return True
        self._due = False
        if self._transaction is None:
            self._ops.extend(beside.rows(place, self._fanout.knows))
            self.note = beside.note
            if not self._ops:
                return True
            now = postgres_time(runtime.time())
            self._transaction = self._fanout.begin(place - 1, now)
            self._place = place
        if not self._admits(self._place - 1):
            return False
        self.moved = True
        return self._send(beside, self._transaction)

    def _send(self, beside: OldRows, transaction: Shares) -> bool:
        room = True
        try:
            while self._ops and room:
                room = self._fanout.put(self._ops.popleft())
        except WalstreamError as error:
            if error.retryable or error.renewable:
                raise
            self.abandon()
            beside.refused(error)
            return False
        if not self._ops:
            self._close()
            beside.sent(transaction)
        return room

    def abandon(self) -> None:
        """Stop sending these rows: the backfill counts them as not sent."""
        if self._transaction is not None:
            self._ops.clear()
            self._close()

    def _close(self) -> None:
        self._fanout.commit(self._place)  # no ops of the stream
        self._transaction = None
