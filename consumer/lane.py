"""One assigned partition: a thread that handles its ops in order.

The fetcher puts messages in, stores what was handled, and seeks where the lane asks it
to. A lane that is stopped finishes the op in hand; a handler cannot be interrupted.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from confluent_kafka import Message

from consumer.error import HandlerFailed
from consumer.inbox import Inbox

_IDLE_S: Final = 1.0
_log = logging.getLogger(__name__)


class Stopping(Exception):
    """The lane is told to stop: whatever waits gives up."""


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


class Work(Protocol):
    """What a lane does with its messages. Everything is called by the lane's thread."""

    wanted: int  # messages that are worth taking at once

    def begin(self) -> None:
        """Get ready; may ask the lane to seek."""

    def handle(self, messages: list[Message]) -> None:
        """Handle in order, and tell the lane; return early when it is stopping."""

    def rest(self) -> None:
        """Nothing came for a while."""

    def end(self) -> None:
        """Let go of everything."""


class Lane:
    """One partition while it is assigned."""

    def __init__(self, place: Place, wake: Callable[[], None]) -> None:
        self.place = place
        self.inbox = Inbox()
        self.paused = False  # by the fetcher
        self.stored: int | None = None  # by the fetcher: what Kafka knows
        self.known: int | None = None  # by the fetcher: where Kafka would begin
        self.begins: int | None = None  # where it was sought first
        self.handled: int | None = None  # the offset after the last handled record
        self.wanted_offset: int | None = None  # where the fetcher is to seek
        self.error: Exception | None = None
        self._wake = wake
        self._stopping = threading.Event()
        self._sought = threading.Event()
        self._thread: threading.Thread | None = None
        self._after: Lane | None = None  # while it has not ended

    def start(self, work: Work, after: "Lane | None" = None) -> None:
        """Begin, once `after`, the same partition's former lane, has ended."""
        self._after = after
        self._thread = threading.Thread(
            target=self._run, args=(work,), name=f"{self.place}", daemon=True
        )
        self._thread.start()

    @property
    def reached(self) -> int | None:
        """The offset of what comes next; None: not known yet."""
        for offset in (self.handled, self.begins, self.known):
            if offset is not None:
                return offset
        return None

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        self._stopping.set()
        self._sought.set()
        self.inbox.close()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end, its own and that of those before; tell whether it came."""
        deadline = time.monotonic() + timeout_s
        if self._thread is not None:
            self._thread.join(max(0.0, timeout_s))
        after = self._after
        if after is not None:
            after.join(deadline - time.monotonic())
        return self.ended

    @property
    def ended(self) -> bool:
        """Neither its handler runs, nor one of a lane that it was to wait for."""
        if self._thread is not None and self._thread.is_alive():
            return False
        after = self._after
        return after is None or after.ended

    def sleep(self, seconds: float) -> None:
        """Wait, but not after the wish to stop."""
        self._stopping.wait(seconds)

    def seek(self, offset: int) -> None:
        """Go on with the record at this offset: forget what was fetched."""
        self._sought.clear()
        self.begins = max(0, offset)  # or OFFSET_BEGINNING
        self.wanted_offset = offset
        self._wake()
        if not self.stopping:
            self._sought.wait()

    def sought(self) -> None:
        """Say that what comes into the inbox from now on is what was asked for."""
        self.wanted_offset = None
        self._sought.set()

    def _run(self, work: Work) -> None:
        if self._wait():
            self._work(work)
        self._wake()

    def _wait(self) -> bool:
        """Wait for the former lane; False: told to stop before."""
        after = self._after
        if after is not None and not after.join(_IDLE_S):
            _log.warning("%s waits for its former handler to return", self.place)
            while not self.stopping and not after.join(_IDLE_S):
                pass
        if self.stopping:
            return False
        self._after = None
        return True

    def _work(self, work: Work) -> None:
        try:
            try:
                work.begin()
                while not self.stopping:
                    self._turn(work)
            finally:
                work.end()
        except Stopping:
            pass
        except Exception as error:  # noqa: BLE001 - the fetcher raises it
            self.error = error
        except BaseException as error:  # noqa: BLE001 - who calls would not see it
            # SystemExit ends a thread without a word
            failed = HandlerFailed(f"{self.place} ended with {type(error).__name__}")
            failed.__cause__ = error
            self.error = failed.at(*self.place)

    def _turn(self, work: Work) -> None:
        was_full = not self.inbox.drained
        messages = self.inbox.take(work.wanted, _IDLE_S)
        if was_full and self.inbox.drained:
            self._wake()
        if messages:
            work.handle(messages)
        else:
            work.rest()
