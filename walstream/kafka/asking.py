"""Whether Kafka is back: without records nothing else would tell.

A producer that has nothing to deliver hears that brokers are away, and never that they
came back.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

_EVERY_S: Final = 2.0


class Asking:
    """Asks while brokers are away; nothing in it blocks."""

    def __init__(
        self,
        ask: Callable[[], "Future[None]"],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`ask` gives a future that raises unless brokers answer."""
        self._ask = ask
        self._clock = clock
        self._asked: Future[None] | None = None
        self._next = 0.0

    def back(self, *, away: bool) -> bool:
        """Tell whether those that are `away` answered just now."""
        if self._asked is None:
            if away and self._clock() >= self._next:
                self._next = self._clock() + _EVERY_S
                self._asked = self._ask()
            return False
        if not self._asked.done():
            return False
        asked, self._asked = self._asked, None
        return away and asked.exception() is None
