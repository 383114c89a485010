"""The ledger: the LSN that may be confirmed to PostgreSQL. Pure: no clock, no I/O.

Records of a transaction go to several partitions and are delivered in any order across
them, so each transaction counts its own, and the front of the queue decides. Only the
end of a fully delivered transaction moves the position, or a keepalive that arrives
while nothing is in flight and no transaction is open.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from walstream.lsn import Lsn
from walstream.telemetry.meter import TableMeter

NO_ORIGIN: Final = ("", 0)  # it was made on this server


MESSAGES_ALONE: Final = -1
"""In the place of a `last_seq_id`: no op, but messages, which have none."""
_NOTHING: Final = -2


class Counted:
    """Records that are delivered together: a transaction, or one read."""

    __slots__ = ("undelivered",)

    def __init__(self) -> None:
        self.undelivered = 0  # records handed to a sink, no delivery reported yet


class Transaction(Counted):
    """One transaction in flight."""

    __slots__ = (
        "at_end",
        "began",
        "commit_time",
        "end_lsn",
        "last_seq_id",
        "lsn",
        "ops",
        "origin",
        "table",
    )

    def __init__(self, lsn: Lsn, commit_time: int = 0) -> None:
        super().__init__()
        self.lsn = lsn
        self.commit_time = commit_time  # microseconds since 2000-01-01 UTC
        self.end_lsn: Lsn | None = None  # set by its commit
        self.ops = 0  # set by its commit
        self.last_seq_id = _NOTHING  # of its ops in Kafka's transactions
        self.table: TableMeter | None = None  # of its last row; set by its commit
        self.began = 0.0  # by the clock of who measures it
        # name and commit LSN of another server that it was replicated from
        self.origin: tuple[str, Lsn] = NO_ORIGIN
        # called at its commit, with its end LSN, while records may still be added
        self.at_end: tuple[Callable[[Transaction, Lsn], None], ...] = ()


def alone(lsn: Lsn) -> Transaction:
    """Return one that is in no ledger, and of which nothing more comes."""
    transaction = Transaction(lsn)
    transaction.end_lsn = lsn
    return transaction


class Shares:
    """One transaction in several ledgers: delivered when it is delivered in each."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[Transaction]) -> None:
        self._parts = parts

    @property
    def lsn(self) -> Lsn:
        return self._parts[0].lsn

    @property
    def end_lsn(self) -> Lsn | None:
        """End LSN; None while it is open somewhere, or was left open."""
        ends = [part.end_lsn for part in self._parts]
        return None if None in ends else ends[0]

    @property
    def undelivered(self) -> int:
        return sum(part.undelivered for part in self._parts)


class Ledger:
    """Transactions in commit order, and the position up to which all is delivered."""

    def __init__(
        self, resume: Lsn, hear: Callable[[Transaction], None] | None = None
    ) -> None:
        """Call `hear` for each transaction that is fully delivered."""
        self._resume = resume
        self._hear = hear
        self._queue: deque[Transaction] = deque()
        self.delivered_ops = 0  # of transactions delivered whole

    @property
    def undelivered(self) -> int:
        """Records that would be sent again if walstream ended now."""
        return sum(transaction.undelivered for transaction in self._queue)

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight, no transaction open; valid after `advance`."""
        return not self._queue

    @property
    def oldest_commit_time(self) -> int | None:
        """Commit time of the first transaction in flight; from any thread."""
        try:
            return self._queue[0].commit_time
        except IndexError:
            return None

    def begin(self, lsn: Lsn, commit_time: int = 0) -> Transaction:
        """Open the next transaction, of commit LSN `lsn`."""
        transaction = Transaction(lsn, commit_time)
        self._queue.append(transaction)
        return transaction

    def commit(self, end_lsn: Lsn, ops: int = 0) -> None:
        """Close the open transaction: no more records will be added to it."""
        transaction = self._queue[-1]
        for hear in transaction.at_end:
            hear(transaction, end_lsn)
        transaction.end_lsn = end_lsn
        transaction.ops = ops
        if not transaction.undelivered and len(self._queue) > 1:
            self._join_last()

    def _join_last(self) -> None:
        """Merge the last transaction, with nothing in flight, into the one before.

        While Kafka is down a stream may read ops without a topic for hours.
        """
        last = self._queue.pop()
        before = self._queue[-1]
        before.end_lsn = last.end_lsn
        before.ops += last.ops
        before.table = last.table or before.table

    def keepalive(self, wal_end: Lsn) -> None:
        """Note that the server has nothing for this stream below `wal_end`.

        Counts only while nothing is in flight and no transaction is open.
        """
        self.advance()
        if not self._queue and wal_end > self._resume:
            self._resume = wal_end

    def advance(self) -> Lsn:
        """Drop fully delivered transactions; return the position to resume from."""
        queue = self._queue
        while queue:
            front = queue[0]
            if front.undelivered or front.end_lsn is None:
                break
            self._resume = front.end_lsn
            self.delivered_ops += front.ops
            queue.popleft()
            if self._hear is not None:
                self._hear(front)
        return self._resume
