"""Reads one table after the other beside the stream, as they were asked for.

What fails is said once, kept, and tried again later; other tables go on meanwhile, and
the stream in any case.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

import structlog

from walstream.errors import Restart, WalstreamError
from walstream.lsn import Lsn
from walstream.op import ReplicationOp, Table
from walstream.pipeline.backoff import Backoff
from walstream.pipeline.ledger import Shares
from walstream.sources.postgres.backfill.condition import UnfitCondition
from walstream.sources.postgres.incremental.progress import (
    IncrementalProgress,
    TableRequest,
)
from walstream.sources.postgres.incremental.table_run import (
    LIMITS,
    ChunkLimits,
    ChunkReader,
    Run,
)
from walstream.sources.postgres.incremental.threads import Submit
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT, REPAIR, TABLE

_PATIENCE_S: Final = 10.0  # then it is said what is waited for
_ASK_EVERY_S: Final = 1.0
_log = structlog.get_logger()


class BackgroundThreads(Protocol):
    """Threads beside the loop: readers, and one writer."""

    @property
    def read(self) -> Submit: ...

    @property
    def write(self) -> Submit: ...


@dataclass(slots=True)
class _Sent:
    """Rows on their way, and how far the table is when they are delivered."""

    transaction: Shares
    name: str
    wish: TableRequest

    @property
    def delivered(self) -> bool:
        transaction = self.transaction
        return transaction.end_lsn is not None and not transaction.undelivered


@dataclass(slots=True)
class _Failure:
    """Failure of a table, and the time of its next try."""

    said: str = ""
    serial: int = 0  # of the wish: one that is asked anew is tried at once
    again_at: float = 0.0
    passing: Backoff = field(default_factory=lambda: Backoff(1.0, 60.0))
    lasting: Backoff = field(default_factory=lambda: Backoff(60.0, 600.0))


class IncrementalBackfill:
    """The tables of one stream; called by its loop alone."""

    def __init__(  # noqa: PLR0913 - what a stream has, and what a test sets
        self,
        reader: ChunkReader,
        progress: IncrementalProgress,
        threads: BackgroundThreads,
        ask: Callable[[], None],
        clock: Callable[[], float] = runtime.monotonic,
        *,
        limits: ChunkLimits = LIMITS,
    ) -> None:
        """`ask` has the server say soon how far the stream is."""
        self._reader = reader
        self._progress = progress
        self._threads = threads
        self._ask = ask
        self._clock = clock
        self._limits = limits
        self._run: Run | None = None
        self._sent: deque[_Sent] = deque()
        self._writing: Future[None] | None = None
        self._finishing = False
        self._numbering: Future[range] | None = None
        self._numbers = iter(range(0))
        self._failures: dict[str, _Failure] = {}
        self._patient_until: float | None = None
        self._asking: Future[str] | None = None
        self._next_ask = 0.0
        self._look_at = 0.0  # for a table; before that there is none
        self._asked = 0  # what had been asked for then

    @property
    def note(self) -> Callable[[ReplicationOp], None] | None:
        """What is to be told of every op; None: of none."""
        return self._run.note if self._run is not None else None

    def pending(self, most: int) -> list[str]:
        """Name tables that have rows left; not those that failed in this stream."""
        run = self._run

        def has_rows(name: str, wish: TableRequest) -> bool:
            failure = self._failures.get(name)
            read = run is not None and run.name == name
            return read or failure is None or failure.serial != wish.serial

        return self._progress.some(has_rows, most)

    def rows(self, place: Lsn, known: Callable[[Table], bool]) -> list[ReplicationOp]:
        """Return rows that go in between two transactions, where the stream is now."""
        self._settle()
        if self._run is not None and not self._wanted(self._run):
            self._run = None
        if self._run is None:
            self._begin()
        run = self._progress.run = self._run
        self._progress.reading = run.name if run is not None else ""
        if run is None or run.over:
            return []
        try:
            ops = run.rows(place, self._number, known)
        except Restart:
            raise  # of a sink that met a topic
        except Exception as error:  # noqa: BLE001 - none of it may end the stream
            self._fail(run, error)
            return []
        self._wait(run, place)
        return ops

    def sent(self, transaction: Shares) -> None:
        """Note that all of the last rows went out, in this transaction."""
        if self._run is not None:
            self._sent.append(_Sent(transaction, self._run.name, self._run.wish))

    def refused(self, error: WalstreamError) -> None:
        """Note that a sink never takes one of the last rows."""
        if self._run is not None:
            self._fail(self._run, error)

    def _wanted(self, run: Run) -> bool:
        return self._finishing or self._progress.holds(run.name, run.wish)

    def _begin(self) -> None:
        """Take the next table; look for one again when that may have changed."""
        now, asked = self._clock(), self._progress.asked
        if now < self._look_at and asked == self._asked:
            return

        def due(name: str, wish: TableRequest) -> bool:
            failure = self._failures.get(name)
            return (
                failure is None
                or failure.serial != wish.serial
                or now >= failure.again_at
            )

        found = self._progress.first(due)
        if found is None:
            later = (one.again_at for one in self._failures.values())
            self._look_at = min((at for at in later if at > now), default=float("inf"))
            self._asked = asked
            return
        self._look_at = 0.0
        self._run = Run(*found, self._reader, self._threads.read, self._limits)
        self._patient_until = None

    def _number(self) -> int | None:
        """Take a chunk's number, which is kept before it is used."""
        number = next(self._numbers, None)
        if number is None:
            if self._numbering is None:
                self._numbering = self._threads.write(self._progress.numbers)
            if self._numbering.done():
                numbering, self._numbering = self._numbering, None
                self._numbers = iter(numbering.result())
                number = next(self._numbers)
        return number

    def _settle(self) -> None:
        """Keep what is delivered; end a table whose last row is."""
        if self._writing is not None:
            if not self._writing.done():
                return
            self._written(self._writing)
        newest = None
        while self._sent and self._sent[0].delivered:
            newest = self._sent.popleft()
            if self._sent and self._sent[0].name != newest.name:
                break
        if newest is not None:
            self._writing = self._threads.write(
                self._progress.advance, newest.name, newest.wish
            )
        elif self._run is not None and self._run.over and not self._sent:
            self._finishing = True
            self._writing = self._threads.write(
                self._progress.finish, self._run.name, self._run.wish
            )

    def _written(self, writing: Future[None]) -> None:
        """See that it is on disk; else the same is done again, from what is kept."""
        self._writing = None
        finishing, self._finishing = self._finishing, False
        run = self._run
        error = writing.exception()
        if error is not None:
            if run is not None:
                self._fail(run, error)
        elif finishing and run is not None:
            self._failures.pop(run.name, None)
            _log.info("table backfilled", **{TABLE: run.name}, rows=run.wish.rows)
            self._run = None

    def _wait(self, run: Run, place: Lsn) -> None:
        """Log for whom it waits, when that takes long; wake the stream."""
        now = self._clock()
        if run.high > place and now >= self._next_ask:
            self._next_ask = now + _ASK_EVERY_S
            self._ask()
        if not run.waits:
            self._patient_until = None
        elif self._patient_until is None:
            self._patient_until = now + _PATIENCE_S
        elif now >= self._patient_until and self._asking is None:
            self._asking = self._threads.read(self._reader.blockers)
            self._patient_until = float("inf")
        if self._asking is not None and self._asking.done():
            asking, self._asking = self._asking, None
            if asking.exception() is None:
                run.sessions = asking.result()
                _log.warning(
                    "backfill waits for running transactions",
                    **{TABLE: run.name},
                    sessions=asking.result(),
                )

    def _fail(self, run: Run, error: BaseException) -> None:
        """Log why a table does not go on, once; leave it for a while."""
        self._run = self._progress.run = None
        self._finishing, self._progress.reading = False, ""
        if not isinstance(error, WalstreamError):
            error = WalstreamError(f"{type(error).__name__}: a defect")
        text = str(error.args[0])
        failure = self._failures.setdefault(run.name, _Failure())
        wait_s = (failure.passing if error.retryable else failure.lasting).next()
        failure.again_at = self._clock() + wait_s
        failure.serial = run.wish.serial
        if failure.said != text:
            failure.said = text
            said = {TABLE: run.name, ERROR: text, HINT: error.hint}
            if cure := error.repair.sql or error.repair.command:
                said[REPAIR] = cure
            _log.warning("backfill of a table is interrupted", **said)
        fail = partial(self._progress.fail, unfit=isinstance(error, UnfitCondition))
        self._threads.write(fail, run.name, run.wish, text)
