"""Polls of one table: its stored progress, its present keys, and what to read next.

A poll reads the rows that came late under keys that were missing, and then those above
its position, in ranges; the position moves after delivery. What was missing below it is
kept in a ledger and looked for again, until it came or can come no more.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Final, Protocol

import structlog

from walstream.errors import WalstreamError
from walstream.sources.report import TableReport
from walstream.sources.sql.intervals import Interval, missing, ranges
from walstream.sources.sql.key_restart import KeyQueries, KeyWatch
from walstream.sources.sql.missing_keys import Holes, LowWatermark
from walstream.sources.sql.progress import NO_TROUBLE, TableProgress, Trouble
from walstream.sources.sql.task import Ahead, Late, Range, RangeDone
from walstream.spark.outcome import ChunkDone
from walstream.telemetry.fields import HINT, TABLE

RANGE_ROWS: Final = 200_000  # of one task: what a kill repeats, at most, of a long poll
FEW_ROWS: Final = 10_000  # that are read without Spark
_MANY: Final = 10_000  # keys: fewer are one range
_PARTS_EACH: Final = 4  # ranges for each of those side by side: keys are not even
_ENDLESS: Final = 1 << 63  # rows
_JUST_BELOW: Final = 10_000  # keys of transactions that run at the beginning
_LOWEST: Final = -1 << 63  # key
_log = structlog.get_logger()


def _before(first: int) -> int:
    """Return a key below the first row's, and below those that are on their way."""
    if first > 0:
        return 0
    return min(first - 1, max(first - _JUST_BELOW, _LOWEST))


class PollQueries(KeyQueries, Protocol):
    """A connection to the database, for what is asked without Spark."""

    def mark(self) -> LowWatermark | None:
        """Look at the low-water mark; None: the engine has none, or tells it not."""

    def newest(self) -> int | None:
        """Return the greatest key."""

    def ahead(self, after: int, rows: int) -> int | None:
        """Return the key of the last of the next rows; None: there is none."""

    def cuts(self, low: int, high: int, parts: int) -> Sequence[int]:
        """Return keys that part the rows above `low`, up to `high`."""

    def present(self, intervals: Sequence[tuple[int, int]], most: int) -> Sequence[int]:
        """Return the first existing keys, in their order."""


Connect = Callable[[], AbstractContextManager[PollQueries]]
Run = Callable[[Sequence[Range], Callable[[ChunkDone], None]], bool]
"""Runs ranges in their order, side by side if Spark can; False: a stop came first."""


@dataclass(frozen=True, slots=True)
class PollingRules:
    """Rules for polling a table."""

    table: str  # as configured
    start: int | str = "beginning"  # or "end", or the key to begin after
    limit: int = 0  # rows of a poll; 0 is all
    parallelism: int = 1  # ranges at a time; from 2 on keys come in no order
    rereads: bool = False  # from its first key on, when its keys start anew


@dataclass(frozen=True, slots=True)
class _Part:
    """Keys that were missing and came, and where others may be."""

    keys: tuple[int, ...]
    rest: list[Interval]


class Poller:
    """Polls one table, from one thread."""

    def __init__(
        self, rules: PollingRules, progress: TableProgress, connect: Connect, run: Run
    ) -> None:
        self._rules = rules
        self._progress = progress
        self._connect = connect
        self._run = run
        self._number = 0  # of the last range
        self._refused: WalstreamError | None = None
        self._holes = Holes(rules.table, progress, connect)
        self._watch = KeyWatch(
            rules.table, progress, self._holes.forget, rereads=rules.rereads
        )
        self.held = False  # no new rows are read: the ledger is full
        self.read_s = self.publish_s = 0.0  # of all tasks, all in all
        self.told = self._report()

    @property
    def table(self) -> str:
        """Its name, as configured."""
        return self._rules.table

    @property
    def store_s(self) -> float:
        """How long storing took, all in all."""
        return self._progress.store_s

    def poll(self) -> None:
        """Do one poll; raise RecordRefused where a row is refused: it is the next.

        Raises KeysRestarted where keys up to the position are given out again.
        """
        self._refused = None
        with self._connect() as look:
            newest = look.newest()
            self._watch.see(look, newest)
            late = self._late(look)
            self._begin(look)
            high, few = self._high(look, newest)
        if late is not None:
            if not self._read_late(late):
                return
            if self._refused is None:
                self._looked()
        ended = self._hold() or self._catch_up(high, few=few)
        if self._refused is not None:
            raise self._refused
        if ended:
            self.report_trouble(NO_TROUBLE)

    def report_trouble(self, trouble: Trouble) -> None:
        """Keep why the table does not go on, for those who ask."""
        if self._progress.trouble != trouble:
            self._progress.trouble = trouble
            self._store()

    def _begin(self, look: PollQueries) -> None:
        """Decide where to begin, if nothing was ever delivered."""
        progress, start = self._progress, self._rules.start
        if progress.key is not None:
            return
        if start == "beginning":
            oldest = look.oldest()
            if oldest is None:
                return
            # what is missing below the first row may still come
            progress.key = _before(oldest)
        elif start == "end":
            newest = look.newest()
            progress.key = newest or 0
            if newest is not None:
                # of transactions that run now
                first = look.oldest() or 0
                low = max(newest - _JUST_BELOW, _before(first))
                found = look.present([(low + 1, newest)], _JUST_BELOW)
                self._holes.note(missing(low, newest, found))
        else:
            progress.key = int(start)
        progress.origin = look.origin()
        self._store()

    def _late(self, look: PollQueries) -> _Part | None:
        """Begin a look at the missing keys; None: it is too soon."""
        gaps, now = self._progress.gaps, self._progress.now()
        if not gaps.wants_look(now):
            return None
        mark = look.mark()  # before the reading
        self._holes.low = mark.low if mark else None
        return self._part(look, ranges(gaps.due(now, self._holes.low)))

    def _part(self, look: PollQueries, wanted: list[Interval]) -> _Part:
        """Find the first of those that came: a transaction may leave millions."""
        found = look.present(wanted, FEW_ROWS)
        keys = tuple(key for key in found if key in self._progress.gaps)
        if len(found) < FEW_ROWS:
            return _Part(keys, [])
        last = found[-1]
        return _Part(keys, [(max(a, last + 1), b) for a, b in wanted if b > last])

    def _read_late(self, part: _Part) -> bool:
        """Read the rows that came under missing keys; False: a stop came first."""
        while self._refused is None:
            late = Late(part.keys)
            if part.keys and not self._run(
                [self._range(late, len(part.keys))], self._came_late
            ):
                return False
            if not part.rest:
                break
            with self._connect() as look:
                part = self._part(look, part.rest)
        return True

    def _looked(self) -> None:
        """Forget the keys that can come no more, now that those that came are sent."""
        forgotten = self._holes.end_round()
        if forgotten.keys:
            self._progress.given_up += forgotten.keys
            self._store()
            _log.info(
                "walstream no longer waits for missing keys",
                **{TABLE: self._rules.table},
                keys=forgotten.keys,
            )

    def _came_late(self, done: ChunkDone) -> None:
        if not isinstance(done, RangeDone):
            return
        self._progress.gaps.seen(done.keys)
        self._delivered(done)

    def _hold(self) -> bool:
        """Return whether no new rows may be read; say so once."""
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

    def _high(self, look: PollQueries, newest: int | None) -> tuple[int | None, bool]:
        """Find how far this poll goes, and whether that is but few rows."""
        key, limit = self._progress.key, self._rules.limit
        if key is None or newest is None or newest <= key:
            return None, True
        self._holes.see(newest)
        if 0 < limit <= FEW_ROWS:
            return look.ahead(key, limit), True
        high = look.ahead(key, limit) if limit else newest
        if high is None or high - key <= FEW_ROWS:
            return high, True
        end = look.ahead(key, FEW_ROWS)
        return high, end is None or end >= high

    def _catch_up(self, high: int | None, *, few: bool) -> bool:
        """Read what is above the position; False: not all that was to be read."""
        progress, rules = self._progress, self._rules
        if progress.key is None or high is None or high <= progress.key:
            return True
        most, before = rules.limit or _ENDLESS, progress.rows
        if high - progress.key > _MANY:
            self._holes.look_back()
        while progress.key < high and self._refused is None and not self._hold():
            left = most - (progress.rows - before)
            if left <= 0:  # rows came between that were not counted
                return True
            self._holes.begin_reading()
            if rules.parallelism > 1 and high - progress.key > _MANY:
                ended = self._run_side_by_side(progress.key, high, left)
            else:
                part = Ahead(progress.key, high, min(left, RANGE_ROWS))
                ended = self._run(
                    [self._range(part, FEW_ROWS if few else None)], self._advance
                )
            if not ended:
                return False
            if progress.key < high:
                self._holes.look_back()
        return True

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
        self._holes.note(done.missing)
        self._progress.key = done.reached
        self._delivered(done)

    def _delivered(self, done: RangeDone) -> None:
        """Store what was changed for these rows, and why the next one is refused."""
        self._refused = self._refused or done.refused
        if self._refused is not None:
            words = str(self._refused.args[0])
            self._progress.trouble = Trouble(words, self._refused.hint)
        self.read_s += done.read_s
        self.publish_s += done.publish_s
        self._progress.delivered(done.rows)
        self._store()

    def _range(self, span: Ahead | Late, rows: int | None = None) -> Range:
        self._number += 1
        return Range(self._number, self._rules.table, span, rows)

    def _store(self) -> None:
        self._progress.store()
        self.told = self._report()

    def _report(self) -> TableReport:
        """Return how far it is, for other threads."""
        return replace(self._progress.report(), low=self._holes.low)
