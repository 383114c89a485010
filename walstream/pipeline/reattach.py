"""A sink that returns to its source's stream, held until its own worker has ended.

Ops sent meanwhile are kept. Then those that the worker did not deliver go out, in
order; the rest are dropped. Nothing is delivered twice, and the stream only waits if
too much is kept.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from walstream.errors import WalstreamError
from walstream.formats.placeholder import weight
from walstream.lsn import Lsn
from walstream.op import MessageOp, ReplicationOp, Table
from walstream.pipeline.held_end import HeldEnd
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.ports import Sink, flush, send_message
from walstream.records.large_op import takes_large

_MOST_HELD: Final = 20_000  # ops
_MOST_CHARACTERS: Final = 64 << 20  # of their values


class JoiningSink:
    """Stand-in for a sink until its own worker has ended."""

    def __init__(
        self,
        sink: Sink,
        ended: Callable[[], Lsn | None],
        given_up: Callable[[WalstreamError | None], bool],
    ) -> None:
        """Ask `ended` for the LSN below which the worker delivered everything.

        It raises if the worker cannot end. `given_up` gets the reason why the sink does
        not join; False: it is too late, because no worker sends to it any longer.
        """
        self.sink = sink
        self._ended = ended
        self._given_up = given_up
        self._held: deque[tuple[ReplicationOp | MessageOp, Transaction]] = deque()
        self._characters = 0
        self._end = HeldEnd()
        self._place: Lsn | None = None  # what `ended` gave
        self._passed = False  # is the stream there by now?
        self.joined = False  # nothing is held or dropped any more: send to `sink`

    @property
    def name(self) -> str:
        return self.sink.name

    @property
    def takes_large(self) -> bool:
        return takes_large(self.sink)

    @property
    def in_flight(self) -> int:
        return self.sink.in_flight + len(self._held)

    @property
    def _has_room(self) -> bool:
        return len(self._held) < _MOST_HELD and self._characters < _MOST_CHARACTERS

    def ready(self) -> bool:
        """Join when the worker has ended; return False if too much is held."""
        has_room = self.sink.ready()
        if self._place is None:
            self._place = self._ended()
        if self._place is None:
            return self._has_room
        while self._held and has_room:
            op, transaction = self._held[0]
            if transaction.lsn >= self._place:
                if isinstance(op, MessageOp):
                    has_room = send_message(self.sink, op, transaction)
                else:
                    has_room = self.sink.send(op, transaction)
                self._passed = True
            self._let_end(transaction)
            transaction.undelivered -= 1  # as held: what failed until here stays
            self._held.popleft()
        self.joined = self._passed and not self._held
        return has_room and not self._held

    def flush(self) -> None:
        flush(self.sink)

    def _let_end(self, transaction: Transaction) -> None:
        """Let a transaction end behind its last op."""
        if self._holds_more(transaction):
            self._end.take(transaction)
        else:
            self._end.let_go(transaction)

    def _holds_more(self, transaction: Transaction) -> bool:
        """Return whether another op of it follows the first."""
        return len(self._held) > 1 and self._held[1][1] is transaction

    def reach(self, place: Lsn) -> None:
        """Note the stream's place, which may be before the worker's end."""
        self._passed = self._passed or (
            self._place is not None and place >= self._place
        )

    def knows(self, table: Table) -> bool:
        return self.sink.knows(table)

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        """Keep an op, which counts as in flight, or drop it if it was delivered."""
        return self._keep(op, transaction, weight(op.old) + weight(op.new))

    def send_message(self, message: MessageOp, transaction: Transaction) -> bool:
        """Keep or drop a message likewise."""
        return self._keep(message, transaction, len(message.content))

    def _keep(
        self, op: ReplicationOp | MessageOp, transaction: Transaction, size: int
    ) -> bool:
        if self._place is not None and transaction.lsn < self._place:
            return True
        transaction.undelivered += 1
        self._held.append((op, transaction))
        self._characters += size
        return self._has_room

    def give_up(self, error: WalstreamError | None) -> bool:
        """Send nothing: the worker goes on. Return False if it has already ended."""
        if self._place is not None or not self._given_up(error):
            return False
        self.close()
        return True

    def close(self) -> None:
        """Drop what is held and in flight."""
        self._held.clear()
        self.sink.close()
