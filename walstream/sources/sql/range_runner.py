"""Runner of one table's ranges: a few rows here, many in Spark's process.

The poller knows how many a few rows are. A row that is too much for a process's memory
would end this one, with all its tables: so a note in the state folder says whose rows
are being read here, and a table that has one when a process begins is left to Spark.
Spark stays while a worker is connected: so a connection outlives who used it, over
sessions that a database ended which was away.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from walstream.config import Config
from walstream.errors import Transient
from walstream.kafka.bulk_producer_pool import BulkProducerPool
from walstream.pipeline.shutdown import Stop
from walstream.sources.sql.task import Range
from walstream.sources.sql.task_factory import PollOrder
from walstream.spark.driver.client import Driver
from walstream.spark.driver.messages import Failed, Finished
from walstream.spark.outcome import ChunkDone, ChunkFailed, ChunkPostponed
from walstream.state import folder_errors

_LOOK_EVERY_S: Final = 0.1


class IdleConnections:
    """The connections of one source that nobody uses now."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._idle: deque[Driver] = deque()

    def take(self) -> Driver:
        """Return one that is open, or a new one; raise Transient if there is none."""
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


@dataclass(frozen=True, slots=True)
class Ends:
    """Stop of a source's polls."""

    stop: Stop
    over: threading.Event = field(default_factory=threading.Event)  # the session is
    failed: threading.Event = field(default_factory=threading.Event)  # at once, too

    @property
    def begin_nothing(self) -> bool:
        return self.stop.requested or self.over.is_set() or self.failed.is_set()

    @property
    def cut(self) -> bool:
        """Return whether what runs is to end as it is."""
        return self.stop.expired or self.failed.is_set()


class Caution:
    """The note that a table's rows are being read in this process."""

    def __init__(self, folder: Path, table: str) -> None:
        self._path = folder / f"reading.{sha256(table.encode()).hexdigest()[:16]}"
        self.left = self._path.exists()  # by a process that ended amid them

    def __enter__(self) -> None:
        # no fsync: it is to outlive the process, not the machine
        try:
            self._path.touch()
        except OSError as error:
            raise folder_errors.refusal(self._path.parent, error) from error

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # the next range deletes it
            self._path.unlink(missing_ok=True)

    def forget(self) -> None:
        """Note that Spark got through."""
        if self.left:
            self._path.unlink(missing_ok=True)
            self.left = False


@dataclass(frozen=True, slots=True)
class Here:
    """Resources of a range that runs in this process."""

    config: Config
    senders: BulkProducerPool
    caution: Caution


class _Cut(Transient):
    """A stop, or the end of a session, came first."""


class Runner:
    """Runs ranges for one table, from one thread."""

    def __init__(
        self,
        line: IdleConnections,
        order: Callable[[Sequence[Range]], PollOrder | None],
        ends: Ends,
        here: Here | None = None,
    ) -> None:
        """Use `here` for a few rows; None: Spark runs all.

        `order` may wait for what tasks are given; None: an end came first.
        """
        self._line = line
        self._order = order
        self._ends = ends
        self._here = here
        self._driver: Driver | None = None
        self.cut_short = False  # records were sent that will come again

    def __call__(
        self, parts: Sequence[Range], on_done: Callable[[ChunkDone], None]
    ) -> bool:
        """Run ranges; False: an end came first. Raises what ended them."""
        if self._ends.begin_nothing:
            return False
        order = self._order(parts)
        if order is None:
            return False
        here = self._here
        if here is None or here.caution.left or any(p.rows is None for p in parts):
            return self._run_by_spark(order, on_done)
        try:
            with here.caution:
                task = order.task(here.config, None)
                for part in parts:
                    on_done(task.here(part, self._check, here.senders))
        except _Cut:
            self.cut_short = True
            return False
        return True

    def _check(self) -> None:
        if self._ends.cut:
            raise _Cut("the poll was cut short")

    def _run_by_spark(
        self, order: PollOrder, on_done: Callable[[ChunkDone], None]
    ) -> bool:
        if self._driver is None:
            self._driver = self._line.take()
        self._driver.order(order)
        while not self._ends.cut:
            match self._driver.hear(_LOOK_EVERY_S):
                case ChunkDone() as done:
                    on_done(done)
                case Finished():
                    if self._here is not None:
                        self._here.caution.forget()
                    return True
                case Failed(error):
                    self._close()
                    if isinstance(error, ChunkFailed):  # a poll tries for ever
                        raise Transient(str(error.args[0]), hint=error.hint)
                    raise error
                case ChunkPostponed() | None:  # no range is put back
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
