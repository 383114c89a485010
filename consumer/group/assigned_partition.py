"""One assigned partition: its messages, and the turns in which they are handled.

The fetcher puts messages in, stores what was handled, and seeks where the lane asks it
to. A pool's threads give the lane its turns, one at a time. A lane that is stopped
finishes the op in hand; a handler cannot be interrupted.
"""

import logging
import math
import threading
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from confluent_kafka import Message

from consumer.errors import HandlerFailed
from consumer.group.buffer import Budget, Inbox
from consumer.group.linger import Linger
from consumer.group.schedule import AGAIN, After
from consumer.group.thread_pool import Pool
from walstream.telemetry import runtime

_FORMER_POLL_S: Final = 0.05
_FORMER_PATIENCE_S: Final = 1.0
_TILL_URGED: Final = After(math.inf, deaf=True)
_log = logging.getLogger(__name__)


class Pause(Exception):
    """Go on later, with the first of the messages that are not done with."""

    def __init__(self, seconds: float, done: int = 0) -> None:
        super().__init__()
        self.seconds = seconds
        self.done = done  # messages


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


class Work(Protocol):
    """The work of a lane with its messages.

    Everything is called by one thread at a time, not always the same. What has to wait
    raises Pause, and is called again with the same.
    """

    wanted: int  # messages that are worth having at once

    def begin(self) -> None:
        """Get ready; may ask the lane to seek."""

    def handle(self, messages: list[Message]) -> int:
        """Handle the first ones, a batch; tell how many are done with."""

    def rest(self) -> float | None:
        """Nothing is left; tell after how many seconds to be called again."""

    @property
    def holds(self) -> bool:
        """Whether `end` has anything to do. Called between turns."""

    def end(self) -> None:
        """Let go of everything."""


class AssignedPartition:
    """One partition while it is assigned."""

    def __init__(self, place: Place, wake: Callable[[], None], budget: Budget) -> None:
        self.place = place
        self.inbox = Inbox(budget)
        self.cut: int | None = None  # by the fetcher: the offset that had no room
        self.stored: int | None = None  # by the fetcher: the handled that Kafka knows
        self.begins: int | None = None  # the offset where it begins, once it is known
        self.handled: int | None = None  # the offset after the last handled record
        self.wanted_offset: int | None = None  # where the fetcher is to seek
        self.error: Exception | None = None
        self.linger: Linger | None = None  # of a work that wants full batches
        self._wake = wake
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._begun = self._seeks = False
        self._after: AssignedPartition | None = None  # while it has not ended
        self._waits_since: float | None = None  # for the one before

    def start(
        self, work: Work, pool: Pool, after: "AssignedPartition | None" = None
    ) -> None:
        """Begin, once `after`, the same partition's former lane, has ended."""
        self._work, self._pool, self._after = work, pool, after
        pool.add(self)

    @property
    def reached(self) -> int | None:
        """The offset of what comes next; None: not known yet."""
        return self.begins if self.handled is None else self.handled

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    @property
    def others(self) -> int:
        """How many lanes there are, about."""
        return len(self._pool)

    def put(self, messages: Sequence[Message], *, force: bool = False) -> int:
        """Take in what there is room for; give the number."""
        if self.linger is not None:
            self.linger.see(messages)
        count = self.inbox.put(messages, force=force)
        if count:
            self._pool.call(self)
        return count

    def stop(self) -> None:
        """Let no other op begin. A lane that does nothing ends at once."""
        self._stopping.set()
        self.inbox.close()
        if not self._pool.withdraw(self):
            self._pool.urge(self)
        elif self._begun and self._work.holds:
            self._pool.add(self, first=True)
        else:
            self._finish()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end, its own and that of those before; tell whether it came."""
        deadline = runtime.monotonic() + timeout_s
        self._ended.wait(max(0.0, timeout_s))
        after = self._after
        if after is not None:
            after.join(deadline - runtime.monotonic())
        return self.ended

    @property
    def ended(self) -> bool:
        """Neither its handler runs, nor one of a lane that it was to wait for."""
        if not self._ended.is_set():
            return False
        after = self._after
        return after is None or after.ended

    def seek(self, offset: int) -> None:
        """Go on with the record at this offset: forget what was fetched."""
        self.begins = max(0, offset)  # or OFFSET_BEGINNING
        self._seeks = True
        self.wanted_offset = offset
        self._wake()

    def sought(self) -> None:
        """Note that what comes into the inbox from now on is what was asked for."""
        self.wanted_offset = None
        if self.linger is not None:
            self.linger.forget()
        self._pool.urge(self)

    def urge(self) -> None:
        """End a pause: what was waited for has come."""
        self._pool.urge(self)

    def turn(self) -> After | None:
        try:
            after = self._turn()
        except Pause as pause:
            after = After(pause.seconds, deaf=True)
        except Exception as error:  # noqa: BLE001 - the fetcher raises it
            self._fail(error)
            after = None
        except BaseException as error:  # noqa: BLE001 - who calls would not see it
            # SystemExit ends a thread without a word
            failed = HandlerFailed(f"{self.place} ended with {type(error).__name__}")
            failed.__cause__ = error
            self._fail(failed.at(*self.place))
            after = None
        if self._seeks and after is not None:
            self._seeks = False
            after = _TILL_URGED
        if after is None:
            self._finish()
        return after

    def _turn(self) -> After | None:
        if self.stopping:
            if self._begun:
                self._work.end()
            return None
        if self._after is not None and not self._former_ended(self._after):
            return After(_FORMER_POLL_S, deaf=True)
        if not self._begun:
            self._work.begin()
            self._begun = True
            return AGAIN
        if self.wanted_offset is not None:
            return _TILL_URGED  # by somebody else: what is in the inbox is void
        return self._work_turn()

    def _work_turn(self) -> After:
        if self.linger is not None:
            seconds_left = self.linger.left(self.inbox)
            if seconds_left > 0:
                return After(seconds_left)
        hand = self.inbox.take(self._work.wanted)
        if not hand:
            seconds = self._work.rest()
            return After(math.inf if seconds is None else seconds)
        if self.linger is not None:
            self.linger.took(hand)
        self._handle(hand)
        return AGAIN

    def _handle(self, hand: list[Message]) -> None:
        """Hold nothing between turns: others may need the room meanwhile."""
        done = 0
        try:
            done = self._work.handle(hand)
        except Pause as pause:
            done = pause.done
            raise
        finally:
            if self._seeks:
                done = len(hand)
            self.inbox.release(hand[:done])
            self.inbox.put_back(hand[done:])

    def _former_ended(self, former: "AssignedPartition") -> bool:
        if former.ended:
            self._after = None
            return True
        now = runtime.monotonic()
        if self._waits_since is None:
            self._waits_since = now
        elif now - self._waits_since > _FORMER_PATIENCE_S:
            self._waits_since = math.inf
            _log.warning("%s waits for its previous handler to return", self.place)
        return False

    def _fail(self, error: Exception) -> None:
        self.error = error
        if self._begun:
            try:
                self._work.end()
            except Exception as later:  # noqa: BLE001 - the first one counts
                _log.warning("%s ended with %s", self.place, type(later).__name__)

    def _finish(self) -> None:
        self.inbox.close()
        self._ended.set()
        self._wake()
