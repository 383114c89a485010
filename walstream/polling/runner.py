"""Has ranges run by Spark's process, one order after the other, for one table."""

import threading
from collections.abc import Callable, Sequence
from typing import Final

from walstream.driver.client import Driver
from walstream.driver.order import Failed, Finished, Order
from walstream.errors import Transient
from walstream.spark.chunk import ChunkDone, ChunkFailed
from walstream.spark.poll import Range
from walstream.stop import Stop

_LOOK_EVERY_S: Final = 0.1


class Runner:
    """Keeps its connection while the table is polled: so does Spark stay."""

    def __init__(
        self,
        driver: str,
        order: Callable[[Sequence[Range]], Order],
        stop: Stop,
        failed: threading.Event,
    ) -> None:
        """`driver` is an address; `failed`: another table's poll has ended all."""
        self._address = driver
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
            self._driver = Driver(self._address)
        self._driver.order(self._order(parts))
        while not (self._stop.expired or self._failed.is_set()):
            match self._driver.hear(_LOOK_EVERY_S):
                case ChunkDone() as done:
                    on_done(done)
                case Finished():
                    return True
                case Failed(error):
                    self.close()
                    if isinstance(error, ChunkFailed):  # a poll tries for ever
                        raise Transient(str(error.args[0]), hint=error.hint)
                    raise error
                case None:
                    pass
        self.cut_short = True
        self.close()
        return False

    def close(self) -> None:
        """Leave; what still runs is ended."""
        if self._driver is not None:
            self._driver.close()
            self._driver = None
