"""Wrong tokens: slow to be refused, counted, and told of once a minute.

A few wait at a time; beyond these an answer comes at once, so that they hold neither
the connections nor the thread that others ask by. What keeps a token from being guessed
is its length.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from walstream.telemetry import runtime

DELAY_S: Final = 0.5
MOST: Final = 20  # that wait, of the listener's connections
_SAY_AGAIN_S: Final = 60.0
_log = structlog.get_logger()


class WrongTokens:
    """Those of one run. Counted by the thread that answers, told of by the other."""

    def __init__(self, clock: Callable[[], float] = runtime.monotonic) -> None:
        self._clock = clock
        self.count = 0
        self._waiting = 0
        self._last = ""  # the address of who showed the last one
        self._told = 0
        self._said_at = -_SAY_AGAIN_S

    async def one(self, address: str) -> None:
        """Count one, and wait before it is refused."""
        self.count += 1
        self._last = address
        if self._waiting >= MOST:
            return
        self._waiting += 1
        try:
            await asyncio.sleep(DELAY_S)
        finally:
            self._waiting -= 1

    def tell(self) -> None:
        """Log how many there were since, unless that was said a moment ago."""
        count, now = self.count, self._clock()
        if count > self._told and now - self._said_at >= _SAY_AGAIN_S:
            _log.warning(
                "HTTP was shown wrong tokens",
                count=count - self._told,
                last_from=self._last,
            )
            self._told, self._said_at = count, now
