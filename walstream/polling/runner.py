"""Has ranges run by Spark's process, one order after the other, for one table.

Spark stays while somebody is connected: so a connection outlives who used it, over
sessions that a database ended which was away.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from walstream.driver.client import Driver
from walstream.driver.order import Failed, Finished, Order
from walstream.errors import Transient
from walstream.spark.chunk import ChunkDone, ChunkFailed
from walstream.spark.poll import Range
from walstream.stop import Stop

_LOOK_EVERY_S: Final = 0.1


class Line:
    """The connections of one source that nobody uses now."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._idle: deque[Driver] = deque()

    def take(self) -> Driver:
        """Give one that is open, or a new one; raise Transient where there is none."""
        while True:
            try:
                driver = self._idle.pop()
            except IndexError:
                return Driver(self._address)
            if driver.hear(0) is None:
                return driver
            driver.close()  # its end was all that there was to hear

    def give_back(self, driver: Driver) -> None:
        self._idle.append(driver)

    def close(self) -> None:
        """Let Spark end, for this source."""
        while self._idle:
            self._idle.pop().close()


class Runner:
    """Runs ranges for one table, from one thread."""

    def __init__(
        self,
        line: Line,
        order: Callable[[Sequence[Range]], Order],
        stop: Stop,
        failed: threading.Event,
    ) -> None:
        """`failed`: another table's poll has ended all."""
        self._line = line
        self._order = order
        self._stop = stop
        self._failed = failed
        self._driver: Driver | None = None
        self.cut_short = False  # records were sent that will come again

    def __call__(
        self, parts: Sequence[Range], on_done: Callable[[ChunkDone], None]
    ) -> bool:
        """Run ranges; False: an end came first. Raises what ended them."""
        if self._stop.requested or self._failed.is_set():
            return False
        if self._driver is None:
            self._driver = self._line.take()
        self._driver.order(self._order(parts))
        while not (self._stop.expired or self._failed.is_set()):
            match self._driver.hear(_LOOK_EVERY_S):
                case ChunkDone() as done:
                    on_done(done)
                case Finished():
                    return True
                case Failed(error):
                    self._close()
                    if isinstance(error, ChunkFailed):  # a poll tries for ever
                        raise Transient(str(error.args[0]), hint=error.hint)
                    raise error
                case None:
                    pass
        self.cut_short = True
        self._close()
        return False

    def leave(self) -> None:
        """Use it no more; what still runs is ended."""
        if self._driver is not None and not self._driver.running:
            self._line.give_back(self._driver)
            self._driver = None
        self._close()

    def _close(self) -> None:
        if self._driver is not None:
            self._driver.close()
            self._driver = None
