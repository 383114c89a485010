"""Wait of a partition for a full batch, as a producer's linger.ms."""

import math
import threading
from collections import deque
from collections.abc import Callable, Sequence

from confluent_kafka import Message

from consumer.group.buffer import HAND, Inbox
from walstream.telemetry import runtime


class Linger:
    """Counts from a message's arrival: what was due and comes again waits no more."""

    def __init__(
        self,
        seconds: float,
        wanted: int,
        clock: Callable[[], float] = runtime.monotonic,
    ) -> None:
        self._seconds = seconds
        self._wanted = wanted  # messages
        self._clock = clock
        self._lock = threading.Lock()
        self._arrivals: deque[tuple[int, float]] = deque()  # up to this offset, when
        self._due = 0  # what lies before this offset was handed out once

    def see(self, messages: Sequence[Message]) -> None:
        """Note when these arrived, before the inbox has them."""
        if messages:
            with self._lock:
                self._arrivals.append((messages[-1].offset() or 0, self._clock()))

    def forget(self) -> None:
        """Note that other messages will come."""
        with self._lock:
            self._arrivals.clear()
            self._due = 0

    def took(self, hand: Sequence[Message]) -> None:
        """Note what is handed out: some of it may come again."""
        if hand:
            with self._lock:
                self._due = (hand[-1].offset() or 0) + 1

    def left(self, inbox: Inbox) -> float:
        """Return how many seconds to wait for more messages; 0: take those received."""
        due = self._due_at(inbox.first_offset)
        full = inbox.count >= self._wanted or inbox.bytes >= HAND
        return 0.0 if full else max(0.0, due - self._clock())

    def _due_at(self, offset: int | None) -> float:
        """Return until when this one waits; forget when those before it came."""
        with self._lock:
            arrivals = self._arrivals
            while arrivals and offset is not None and arrivals[0][0] < offset:
                arrivals.popleft()
            if not arrivals or offset is None or offset < self._due:
                return -math.inf
            return arrivals[0][1] + self._seconds
