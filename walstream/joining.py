"""A sink that comes back to its source's stream: it is held until its other one ended.

What is sent meanwhile is kept. Then everything that the other one did not deliver goes
out, in order; the rest is dropped. Nothing is delivered twice, and nobody waits, unless
more is kept than fits.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from walstream.errors import WalstreamError
from walstream.ledger import Transaction
from walstream.lsn import Lsn
from walstream.op import ReplicationOp, Table
from walstream.ports import Sink

_MOST_HELD: Final = 20_000  # ops


class JoiningSink:
    """Stands for a sink until that may be sent to."""

    def __init__(
        self,
        sink: Sink,
        ended: Callable[[], Lsn | None],
        given_up: Callable[[WalstreamError | None], bool],
    ) -> None:
        """Ask `ended` for the LSN below which the other one delivered all.

        It raises what keeps that from happening. `given_up` hears why the sink will not
        join; False: it is too late, nobody else sends to it any more.
        """
        self.sink = sink
        self._ended = ended
        self._given_up = given_up
        self._held: deque[tuple[ReplicationOp, Transaction]] = deque()
        self._place: Lsn | None = None  # what `ended` gave
        self.joined = False  # nothing is held any more: send to `sink` itself

    @property
    def name(self) -> str:
        return self.sink.name

    @property
    def in_flight(self) -> int:
        return self.sink.in_flight + len(self._held)

    def ready(self) -> bool:
        """Join when the other one has ended; False: too much is held."""
        has_room = self.sink.ready()
        if self._place is None:
            self._place = self._ended()
        place = self._place
        if place is None:
            return len(self._held) < _MOST_HELD
        while self._held and has_room:
            op, transaction = self._held.popleft()
            transaction.undelivered -= 1
            if transaction.lsn >= place:
                has_room = self.sink.send(op, transaction)
        self.joined = not self._held
        return has_room and self.joined

    def knows(self, table: Table) -> bool:
        return self.sink.knows(table)

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        """Keep it: it counts as under way."""
        transaction.undelivered += 1
        self._held.append((op, transaction))
        return len(self._held) < _MOST_HELD

    def give_up(self, error: WalstreamError | None) -> bool:
        """Send nothing of it: the other one goes on. False: it will not, it ended."""
        if not self._given_up(error):
            return False
        self.close()
        return True

    def close(self) -> None:
        """Give up what is held and in flight."""
        self._held.clear()
        self.sink.close()
