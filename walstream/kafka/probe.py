"""Probe for the end of an outage: without records nothing else shows it.

A producer that has nothing to deliver hears that brokers are away, and never that they
came back.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, Protocol

from walstream.telemetry import runtime

_EVERY_S: Final = 2.0


class Answering(Protocol):
    """User of Kafka that wants to learn when an outage is over."""

    @property
    def unreachable(self) -> bool: ...

    def answers(self) -> None: ...


class BrokerProbe(Protocol):
    """Client that can ask brokers without waiting for them."""

    def ask(self) -> "Future[None]":
        """Return a future that raises if they do not answer."""


class Asking:
    """Asks while brokers are away; nothing in it blocks."""

    def __init__(
        self, whom: BrokerProbe, clock: Callable[[], float] = runtime.monotonic
    ) -> None:
        self._whom = whom
        self._clock = clock
        self._asked: Future[None] | None = None
        self._next = 0.0

    def look(self, kafka: Answering) -> None:
        """Report an answer after an outage."""
        if self._asked is None:
            if kafka.unreachable and self._clock() >= self._next:
                self._next = self._clock() + _EVERY_S
                self._asked = self._whom.ask()
        elif self._asked.done():
            asked, self._asked = self._asked, None
            if kafka.unreachable and asked.exception() is None:
                kafka.answers()
