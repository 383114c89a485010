"""One table's polls: what is stored of it, what is there now, and what to read next.

A poll reads the rows that came late under keys that were missing, and then those above
its position, in ranges that Spark runs; the position moves after delivery. What was
missing below it is kept in a ledger and looked for again, until it came or can come no
more.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog

from walstream.errors import WalstreamError
from walstream.gaps import Interval, missing, ranges
from walstream.metrics import HINT, TABLE
from walstream.polling.progress import Progress
from walstream.spark.chunk import ChunkDone
from walstream.spark.poll import Ahead, Late, Range, RangeDone

RANGE_ROWS: Final = 200_000  # of one task: what a kill repeats, at most, of a long poll
_LATE_ROWS: Final = 10_000
_MANY: Final = 10_000  # keys: fewer are one range
_PARTS_EACH: Final = 4  # ranges for each of those side by side: keys are not even
_SURE_S: Final = 60.0  # a key may be drawn before its transaction is seen
_ENDLESS: Final = 1 << 63  # rows
_JUST_BELOW: Final = 10_000  # keys under the end that are looked for at `start = "end"`
_log = structlog.get_logger()


class Mark(Protocol):
    """An engine's low-water mark: below `low` every transaction has ended."""

    @property
    def next(self) -> int: ...

    @property
    def low(self) -> int: ...


class Look(Protocol):
    """A connection to the database, for what is asked without Spark."""

    def mark(self) -> Mark | None:
        """Look at the low-water mark; None: the engine has none, or tells it not."""

    def newest(self) -> int | None:
        """Give the greatest key."""

    def oldest(self) -> int | None:
        """Give the least key."""

    def ahead(self, after: int, rows: int) -> int | None:
        """Give the key of the last of the next rows; None: there is none."""

    def cuts(self, low: int, high: int, parts: int) -> Sequence[int]:
        """Give keys that part the rows above `low`, up to `high`."""

    def present(self, intervals: Sequence[tuple[int, int]]) -> Sequence[int]:
        """Give the keys that are there now."""


Connect = Callable[[], AbstractContextManager[Look]]
Run = Callable[[Sequence[Range], Callable[[ChunkDone], None]], bool]
"""Runs ranges in their order, side by side if Spark can; False: a stop came first."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How a table is polled."""

    table: str  # as configured
    start: int | str = "beginning"  # or "end", or the key to begin after
    limit: int = 0  # rows of a poll; 0 is all
    parallelism: int = 1  # ranges at a time; from 2 on keys come in no order


@dataclass(frozen=True, slots=True)
class _Horizon:
    """The greatest key of some moment, and what shows that all below it ended."""

    key: int
    mark: int
    at: float


class Poller:
    """Polls one table, from one thread."""

    def __init__(
        self, rules: Rules, progress: Progress, connect: Connect, run: Run
    ) -> None:
        self._rules = rules
        self._progress = progress
        self._connect = connect
        self._run = run
        self._number = 0  # of the last range
        self._refused: WalstreamError | None = None
        self._horizon: _Horizon | None = None
        self._settled: int | None = None  # what is missing up to this never comes
        self._low: int | None = None  # the engine's low-water mark, as last seen
        self.held = False  # no new rows are read: the ledger is full
        self.told = self._report()

    def poll(self) -> None:
        """Do one poll; raise RecordRefused where a row is refused: it is the next."""
        self._refused = None
        with self._connect() as look:
            late = self._late(look)
            self._begin(look)
            high = self._high(look)
        for keys in _parts(late or [], _LATE_ROWS):
            if not self._run([self._range(Late(tuple(keys)))], self._came_late):
                return
        if late is not None and self._refused is None:
            self._looked()
        ended = not self._hold() and self._catch_up(high)
        if self._refused is not None:
            raise self._refused
        if ended and self._progress.error:
            self._progress.error = ""
            self._store()

    def _begin(self, look: Look) -> None:
        """Decide where to begin, if nothing was ever delivered."""
        progress, start = self._progress, self._rules.start
        if progress.key is not None:
            return
        if start == "beginning":
            oldest = look.oldest()
            if oldest is None:
                return
            # what is missing below the first row may still come
            progress.key = min(0, oldest - 1)
        elif start == "end":
            newest = look.newest()
            progress.key = newest or 0
            if newest is not None:
                # of transactions that run now
                first = look.oldest() or 0
                low = max(newest - _JUST_BELOW, min(0, first - 1))
                found = look.present([(low + 1, newest)])
                self._note(missing(low, newest, found))
        else:
            progress.key = int(start)
        self._store()

    def _late(self, look: Look) -> list[int] | None:
        """Find the rows that came under missing keys; None: it is too soon to look."""
        gaps, now = self._progress.gaps, self._progress.now()
        if not gaps.wants_look(now):
            return None
        mark = look.mark()  # before the reading
        self._low = mark.low if mark else None
        due = gaps.due(now, self._low)
        return [key for key in look.present(ranges(due)) if key in gaps]

    def _looked(self) -> None:
        """Forget the keys that can come no more, now that those that came are sent."""
        forgotten = self._progress.gaps.looked(self._progress.now())
        if forgotten.gaps:
            self._progress.given_up += forgotten.keys
            self._store()
            _log.info(
                "keys that were missing are not waited for any more",
                **{TABLE: self._rules.table},
                keys=forgotten.keys,
            )

    def _came_late(self, done: ChunkDone) -> None:
        if not isinstance(done, RangeDone):
            return
        self._progress.gaps.seen(done.keys)
        self._delivered(done)

    def _hold(self) -> bool:
        """Tell whether no new rows may be read; say so once."""
        full = self._progress.gaps.full
        was, self.held = self.held, full
        if full and not was:
            _log.warning(
                "no new rows are read: too many keys are missing below them",
                **{
                    TABLE: self._rules.table,
                    HINT: "raise max_gaps or lower gap_timeout; sparse keys need"
                    ' gap_timeout = "0"',
                },
                intervals=len(self._progress.gaps),
            )
        elif was and not full:
            _log.info("new rows are read again", **{TABLE: self._rules.table})
        self.told = self._report()
        return full

    def _high(self, look: Look) -> int | None:
        """Find how far this poll goes."""
        key, limit = self._progress.key, self._rules.limit
        if key is None:
            return None
        return look.ahead(key, limit) if limit else look.newest()

    def _catch_up(self, high: int | None) -> bool:
        """Read what is above the position; False: not all that was to be read."""
        progress, rules = self._progress, self._rules
        if progress.key is None or high is None or high <= progress.key:
            return True
        most, before = rules.limit or _ENDLESS, progress.rows
        if high - progress.key > _MANY:
            self._look_back()
        while progress.key < high and self._refused is None and not self._hold():
            left = most - (progress.rows - before)
            if left <= 0:  # rows came between that were not counted
                return True
            if rules.parallelism > 1 and high - progress.key > _MANY:
                ended = self._run_side_by_side(progress.key, high, left)
            else:
                part = Ahead(progress.key, high, min(left, RANGE_ROWS))
                ended = self._run([self._range(part)], self._advance)
            if not ended:
                return False
            if progress.key < high:
                self._look_back()
        return progress.key >= high

    def _look_back(self) -> None:
        """See up to which key every transaction has ended, before more is read.

        Old holes need no look again: a table may have more of them than are kept.
        """
        now, horizon = self._progress.now(), self._horizon
        with self._connect() as look:
            newest = look.newest()
            # afterwards: who drew a lower key is among those of then
            mark = look.mark()
        if mark is None or newest is None:
            self._horizon = None
            return
        if horizon is not None:
            if mark.low < horizon.mark or now - horizon.at < _SURE_S:
                return
            self._settled = horizon.key
        self._horizon = _Horizon(newest, mark.next, now)

    def _run_side_by_side(self, low: int, high: int, most: int) -> bool:
        """Read in parallel ranges; the position moves over what is done in a row."""
        parts = self._rules.parallelism * _PARTS_EACH
        with self._connect() as look:
            end = look.ahead(low, min(most, RANGE_ROWS * parts))
            high = min(high, end or high)
            cuts = [*look.cuts(low, high, parts), high]
        done: dict[int, RangeDone] = {}
        spans = [
            self._range(Ahead(low, cut))
            for low, cut in zip([low, *cuts], cuts, strict=False)
            if low < cut
        ]
        left = iter([span.number for span in spans])
        waited = next(left, None)

        def take(one: ChunkDone) -> None:
            nonlocal waited
            if isinstance(one, RangeDone):
                done[one.number] = one
            while waited in done and self._refused is None:
                self._advance(done.pop(waited))
                waited = next(left, None)

        return self._run(spans, take)

    def _advance(self, done: ChunkDone) -> None:
        """Move the position over what was delivered."""
        if not isinstance(done, RangeDone):
            return
        progress = self._progress
        self._note(self._open(done.missing))
        progress.key = done.reached
        self._delivered(done)

    def _delivered(self, done: RangeDone) -> None:
        """Store what was changed for these rows, and why the next one is refused."""
        self._refused = self._refused or done.refused
        if self._refused is not None:
            self._progress.error = str(self._refused.args[0])
        self._progress.delivered(done.rows)
        self._store()

    def _open(self, gaps: Sequence[Interval]) -> list[Interval]:
        """Leave out what can come no more, where there is little room."""
        if self._settled is None or not self._progress.gaps.half_full:
            return list(gaps)
        least = self._settled + 1
        return [(max(low, least), high) for low, high in gaps if high >= least]

    def _note(self, gaps: Sequence[Interval]) -> None:
        """Remember what is missing, with a mark that was taken after the reading."""
        if not gaps:
            return
        with self._connect() as look:
            mark = look.mark()
        self._low = mark.low if mark else None
        self._progress.gaps.note(
            gaps, self._progress.now(), mark.next if mark else None
        )

    def _range(self, span: Ahead | Late) -> Range:
        self._number += 1
        return Range(self._number, self._rules.table, span)

    def _store(self) -> None:
        self._progress.store()
        self.told = self._report()

    def _report(self) -> dict[str, Any]:
        """Tell how far it is, for other threads."""
        return {**self._progress.report(), "low": self._low}


def _parts(keys: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    return (keys[start : start + most] for start in range(0, len(keys), most))
