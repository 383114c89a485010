"""Wrong tokens: refused after a delay, counted, and logged once a minute.

Only a few requests wait at a time; further ones are refused at once, so that they hold
neither connections nor the thread. The length of a token protects it from guessing.
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
    """Wrong tokens of one run: one thread counts them, another one logs them."""

    def __init__(self, clock: Callable[[], float] = runtime.monotonic) -> None:
        self._clock = clock
        self.count = 0
        self._waiting = 0
        self._last = ""  # the address that sent the last one
        self._told = 0
        self._said_at = -_SAY_AGAIN_S

    async def one(self, address: str) -> None:
        """Count one, and wait before the request is refused."""
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
        """Log how many came since the last time, at most once a minute."""
        count, now = self.count, self._clock()
        if count > self._told and now - self._said_at >= _SAY_AGAIN_S:
            _log.warning(
                "HTTP requests had wrong tokens",
                count=count - self._told,
                last_from=self._last,
            )
            self._told, self._said_at = count, now
