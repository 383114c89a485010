"""Counts of one worker, for its reports: plain numbers, without locks.

A row costs one addition, on an object that is at hand anyway; histograms take in a
transaction or a poll, never a row. One thread counts, and another may read at any time:
every number only grows, and each is read in one step.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import Final

from walstream.op import EPOCH_S
from walstream.telemetry import runtime
from walstream.telemetry.counts import (
    HistogramCounts,
    PollCounts,
    SinkCounts,
    SourceCounts,
    TableCounts,
)

LATENCY_S: Final[tuple[float, ...]] = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)
COARSE_S: Final[tuple[float, ...]] = (0.001, 0.01, 0.1, 1.0, 10.0)
PHASES: Final = ("read", "publish", "store")
"""What a poll's time goes into: the database, Kafka, the state folder."""
OTHERS: Final = "*"
"""Stands for the tables that came when there were too many to tell apart."""

_MOST: Final = 500  # tables that are told apart


class Histogram:
    """Number of durations between each two bounds."""

    __slots__ = ("_bounds", "_counts", "_total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0  # seconds

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._total += seconds

    def report(self) -> HistogramCounts:
        """Return the counts between the bounds, and the sum."""
        return HistogramCounts(tuple(self._counts), self._total)


class TableMeter:
    """One table's ops; and how long its transactions took."""

    __slots__ = ("name", "ops", "seconds")

    def __init__(self, name: str) -> None:
        self.name = name
        self.ops = 0
        self.seconds = Histogram(COARSE_S)  # of transactions that ended with it

    def report(self) -> TableCounts:
        return TableCounts(self.ops, self.seconds.report())


class TableMeters:
    """Those of one source, or one sink, by `schema.table`."""

    def __init__(self) -> None:
        self._tables: dict[str, TableMeter] = {}

    def of(self, name: str) -> TableMeter:
        """Find a table's, for as long as this process lives."""
        found = self._tables.get(name)
        if found is None:
            if len(self._tables) >= _MOST:
                name = OTHERS
            found = self._tables.setdefault(name, TableMeter(name))
        return found

    def ops(self) -> dict[str, int]:
        """Return the ops of each table so far."""
        return {name: one.ops for name, one in dict(self._tables).items()}

    def report(self) -> dict[str, TableCounts]:
        return {name: one.report() for name, one in dict(self._tables).items()}


class SinkMeter:
    """One sink of one source, over all its streams."""

    def __init__(self) -> None:
        self.tables = TableMeters()
        self.latency = Histogram(LATENCY_S)  # from the commit to the last delivery
        self.delivered = 0  # ops of transactions delivered whole
        self.errors = 0
        self.records = 0  # that Kafka took
        self.left_out = 0  # records that Kafka had already
        self.counts_records = False  # does anybody?
        self._waited = False
        self._is_told = False  # are these two of this turn?
        self._now = self._counter = 0.0
        self._time = runtime.current().time
        self._perf_counter = runtime.current().perf_counter

    def turn(self) -> None:
        """Begin a turn: what is delivered in it shares a look at the clocks."""
        self._is_told = False

    def deliver(
        self, ops: int, commit_time: int, began: float, table: TableMeter
    ) -> float:
        """Count a transaction that was fully delivered; return how long it took, in s.

        It was committed at `commit_time`, as PostgreSQL counts, `began` to come at
        this perf_counter, and ended with a row of `table`.
        """
        self.delivered += ops
        if not self._is_told:
            self._is_told = True
            self._now = self._time() - EPOCH_S
            self._counter = self._perf_counter()
        # clocks of two machines may disagree
        self.latency.observe(max(0.0, self._now - commit_time / 1e6))
        # began after a look of this turn: all of it within the turn
        took_s = max(0.0, self._counter - began)
        self.tables.of(table.name).seconds.observe(took_s)
        return took_s

    def see(self, *, waiting: bool) -> None:
        """Count it as an error when its target is away, each time once."""
        self.errors += waiting and not self._waited
        self._waited = waiting

    def report(self) -> SinkCounts:
        return SinkCounts(
            self.tables.report(),
            self.latency.report(),
            self.delivered,
            self.errors,
            left_out=self.left_out,
        )


class PollMeter:
    """One polled table's, over all threads that poll it."""

    def __init__(self) -> None:
        self.seconds = Histogram(LATENCY_S)  # of each poll
        self._phases = {
            outcome: {phase: Histogram(COARSE_S) for phase in PHASES}
            for outcome in ("success", "error")
        }
        self._before = 0  # rows, of threads that ended
        self._first = self._last = 0  # what the present one told

    def begin(self, rows: int) -> None:
        """Take in that a thread begins, which counts on from here."""
        self._before += self._last - self._first
        self._first = self._last = rows

    def polled(self, seconds: float, phases: Sequence[float], *, well: bool) -> None:
        """Take in how long a poll took, and each of its PHASES, if it did anything."""
        self.seconds.observe(seconds)
        if any(phases) or not well:
            found = self._phases["success" if well else "error"]
            for phase, spent in zip(PHASES, phases, strict=True):
                found[phase].observe(spent)

    def see(self, rows: int) -> None:
        """Take in how far it has counted."""
        self._last = rows

    def report(self) -> PollCounts:
        rows = self._before + self._last - self._first
        phases = {
            outcome: {phase: one.report() for phase, one in found.items()}
            for outcome, found in self._phases.items()
        }
        return PollCounts(rows, self.seconds.report(), phases)


class Meter:
    """One source's, over all its streams."""

    def __init__(self) -> None:
        self.tables = TableMeters()
        self._sinks: dict[str, SinkMeter] = {}

    def sink(self, name: str) -> SinkMeter:
        return self._sinks.setdefault(name, SinkMeter())

    def report(self) -> SourceCounts:
        """Return all of it."""
        sinks = {name: one.report() for name, one in dict(self._sinks).items()}
        return SourceCounts(tables=self.tables.report(), sinks=sinks)


_OVER_S: Final = 10.0


class Rate:
    """The growth of one number, which is looked at again and again."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def of(self, now: float, number: int) -> float:
        """Add its present value; return its growth per second over the last ten."""
        seen = self._seen
        seen.append((now, number))
        while now - seen[0][0] > _OVER_S:
            seen.popleft()
        then, first = seen[0]
        return (number - first) / (now - then) if now > then else 0.0
