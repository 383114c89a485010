"""The chunks of one snapshot, run to their end by a driver that may die.

What was done under the snapshot is not done again under it. A table whose chunk failed
as often as Spark tries is given up: the others go on, and so does the stream after. One
that met what passes is put back, and tried again for as long as that takes.
"""

import re
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final, Protocol

import structlog

from walstream.errors import Restart, Transient, WalstreamError
from walstream.op import Table
from walstream.pipeline.backoff import Backoff
from walstream.pipeline.shutdown import Stop
from walstream.sources.postgres.backfill.chunk import Chunk, Void
from walstream.sources.postgres.backfill.task_factory import (
    SnapshotOrder,
)
from walstream.sources.report import BackfillReport
from walstream.spark.driver.client import Driver
from walstream.spark.driver.messages import Failed, Finished
from walstream.spark.outcome import ChunkDone, ChunkFailed, ChunkPostponed
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT, TABLE

_LOOK_EVERY_S: Final = 0.1
_TELL_EVERY_S: Final = 10.0
_DEATHS: Final = 4  # of a chunk's workers: as often as Spark tries one that repeats
_ANEW: Final = (Void, Restart)  # the same order would fail the same way
_CHUNK: Final = re.compile(r"chunk (\d+): ")
_log = structlog.get_logger()

Empty = Callable[[Table, int, int], None]
"""Have a table's readers empty it: (table, lsn, chunk number); delivered."""


class JobListener(Protocol):
    """Observer of a job's progress."""

    def done(self, table: str, rows: int) -> None:
        """Note that a table's last chunk was delivered, and its rows in all."""

    def given_up(self, table: str, why: str) -> None:
        """Note that a table is not read any further."""

    def counted(self, chunk: Chunk, done: ChunkDone) -> None:
        """Note that a chunk was delivered, and what of it was not."""

    def look(self, *, now: bool = False) -> None:
        """Look, now and then or at once, at what the job stands on; raise to end it."""


@dataclass(slots=True)
class JobProgress:
    """Progress of a job."""

    chunks: int
    size: int  # of the tables in PostgreSQL, about, in bytes
    began: float  # monotonic
    tables: int = 0  # not finished
    chunks_done: int = 0
    rows: int = 0
    bytes: int = 0  # of keys and values, delivered
    size_done: int = 0
    waits: str = ""  # why the last chunk that did not get through was put back

    def report(self) -> BackfillReport:
        """Return the figures of this moment."""
        elapsed_s = max(runtime.monotonic() - self.began, 1e-3)
        share = self.size_done / self.size if self.size else 0.0
        return BackfillReport(
            tables=self.tables,
            chunks=self.chunks,
            chunks_done=self.chunks_done,
            rows=self.rows,
            bytes=self.bytes,
            rows_per_s=self.rows / elapsed_s,
            share=share,
            left_s=elapsed_s * (1 - share) / share if share else None,
            waits=self.waits,
            elapsed_s=elapsed_s,
        )


class Job:
    """One snapshot's chunks."""

    def __init__(
        self, order: SnapshotOrder, outcome: JobListener, driver: str, empty: Empty
    ) -> None:
        """`driver` is the address of who runs Spark."""
        self._order = order
        self._driver = driver
        self._outcome = outcome
        self._empty = empty
        self._next_number = max((one.number for one in order.chunks), default=0) + 1
        self._left = {chunk.number: chunk for chunk in order.chunks}
        self._of = Counter(map(_table, order.chunks))  # chunks left, by table
        self._rows: Counter[str] = Counter()
        self.progress = JobProgress(
            chunks=len(order.chunks),
            size=sum(chunk.size for chunk in order.chunks),
            began=runtime.monotonic(),
            tables=len(self._of),
        )
        self._told = runtime.monotonic()
        self._backoff = Backoff(longest_s=30.0)
        self._put_back = 0  # chunks of this drive
        self._deaths: Counter[int] = Counter()  # of workers, by chunk number
        self._driven = False
        # of tables without a key, what would come in another order: by table
        self._unsure: dict[str, list[Chunk]] = {}
        for one in order.chunks:
            if not one.repeats and not one.relation.table.key:
                self._unsure.setdefault(_table(one), []).append(one)
        self._rows_unsure: dict[int, int] = {}  # delivered, by chunk number

    def run(self, stop: Stop) -> bool:
        """Run until all is done; False: a stop came first.

        Raises Void when the snapshot can no longer be read, Restart when its topics
        have to be looked at again, and errors for an operator.
        """
        while self._left and not stop.requested:
            self._put_back = 0
            failed = self._drive(stop)
            if failed is None:
                if self._put_back:
                    stop.event.wait(self._backoff.next())
                continue
            if isinstance(failed, ChunkFailed):
                self._give_up(failed)
            elif isinstance(failed, Transient) and not isinstance(failed, _ANEW):
                _log.warning(
                    "trying again", **{ERROR: str(failed.args[0]), HINT: failed.hint}
                )
                stop.event.wait(self._backoff.next())
            else:
                raise failed
        return not self._left

    def _drive(self, stop: Stop) -> WalstreamError | None:
        """Make the driver run what is left; return the error that ended it."""
        if self._driven:
            self._renumber()
        self._driven = True
        with closing(Driver(self._driver)) as driver:
            driver.order(replace(self._order, chunks=self._due()))
            while not stop.requested:
                self._look()
                match driver.hear(_LOOK_EVERY_S):
                    case ChunkDone() as done:
                        self._count(done)
                    case ChunkPostponed() as postponed:
                        self._postpone(postponed)
                    case Failed(error):
                        return error
                    case Finished():
                        return None
                    case None:
                        pass
        return None

    def _due(self) -> list[Chunk]:
        """Return what is left, but hold back what an emptying would take away."""
        unsure = {_table(one) for one in self._left.values() if not one.repeats}
        unsure &= self._unsure.keys()
        left = self._left.values()
        return [one for one in left if not (one.repeats and _table(one) in unsure)]

    def _renumber(self) -> None:
        """Renumber chunks that would be read in another order.

        A table without a key would have the rows of both attempts: it is emptied, and
        what of it was delivered, such chunks too, comes again.
        """
        for name, chunks in self._unsure.items():
            if any(one.number in self._left for one in chunks):
                table = chunks[0].relation.table
                self._empty(table, self._order.snapshot.lsn, self._take_number())
                for one in chunks:
                    self._uncount(name, one)
        for number, chunk in self._left.items():
            if not chunk.repeats:
                self._left[number] = replace(chunk, sent_as=self._take_number())

    def _uncount(self, name: str, chunk: Chunk) -> None:
        rows = self._rows_unsure.pop(chunk.number, None)
        if rows is None:
            return
        self._left[chunk.number] = chunk
        self._rows[name] -= rows
        self._of[name] += 1
        self.progress.chunks_done -= 1
        self.progress.rows -= rows
        self.progress.size_done -= chunk.size

    def _take_number(self) -> int:
        self._next_number += 1
        return self._next_number - 1

    def _look(self) -> None:
        self._outcome.look()
        if runtime.monotonic() - self._told >= _TELL_EVERY_S:
            self._told = runtime.monotonic()
            _log.info("backfilling", **_said(self.progress))

    def _count(self, done: ChunkDone) -> None:
        chunk = self._left.pop(done.number, None)
        if chunk is None:
            return  # of a table that was given up
        self._backoff.reset()
        self.progress.waits = ""
        self._outcome.counted(chunk, done)
        progress = self.progress
        progress.chunks_done += 1
        progress.rows += done.rows
        progress.bytes += done.bytes
        progress.size_done += chunk.size
        table = _table(chunk)
        if not chunk.repeats:
            self._rows_unsure[chunk.number] = done.rows
        self._rows[table] += done.rows
        self._of[table] -= 1
        if not self._of[table]:
            progress.tables -= 1
            self._outcome.done(table, self._rows[table])

    def _postpone(self, chunk: ChunkPostponed) -> None:
        """Leave a chunk for the next drive; say why, once for each drive.

        A chunk whose workers die each time does not suffer from a passing fault: its
        table is given up, as Spark does where it can retry a chunk.
        """
        error = chunk.error
        if chunk.died and chunk.number in self._left:
            self._deaths[chunk.number] += 1
            if self._deaths[chunk.number] >= _DEATHS:
                self._give_up(ChunkFailed(str(error.args[0]), hint=error.hint))
                return
        self.progress.waits = str(error.args[0])
        self._put_back += 1
        if self._put_back == 1:
            _log.warning(
                "a chunk is put back: trying again",
                **{ERROR: str(error.args[0]), HINT: error.hint},
            )

    def _give_up(self, error: ChunkFailed) -> None:
        """Take the table out whose chunk failed; raise where none can be blamed."""
        text = str(error.args[0])
        found = _CHUNK.match(text)
        chunk = self._left.get(int(found[1])) if found else None
        if chunk is None:
            raise error
        self._outcome.look(now=True)  # a server that went away fails every chunk
        table = _table(chunk)
        _log.error(
            "table is skipped: its backfill failed",
            **{TABLE: table, ERROR: text, HINT: error.hint},
        )
        self._left = {
            number: one for number, one in self._left.items() if _table(one) != table
        }
        self.progress.tables -= 1
        self._outcome.given_up(table, text)


def _table(chunk: Chunk) -> str:
    return chunk.relation.table.full_name


def _said(progress: JobProgress) -> dict[str, object]:
    figures = progress.report()
    left_s = figures.left_s
    return {
        "rows": figures.rows,
        "rows_per_s": round(figures.rows_per_s),
        "MiB": round(figures.bytes / (1 << 20), 1),
        "chunks": f"{figures.chunks_done}/{figures.chunks}",
        "left_s": None if left_s is None else round(left_s),
    }
