"""Counts of a worker's process, as it reports them: numbers that only grow.

The counts of processes that ran one after the other, or side by side, are added. What
only one of two has stays as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self, TypeVar


class _Addable(Protocol):
    def __add__(self, other: Self, /) -> Self: ...


_T = TypeVar("_T", bound=_Addable)
_Number = TypeVar("_Number", int, float)


def sums(one: Mapping[str, _T], other: Mapping[str, _T]) -> dict[str, _T]:
    """Return the sums by name."""
    found = dict(one)
    for name, more in other.items():
        found[name] = found[name] + more if name in found else more
    return found


def _sum(one: _Number | None, other: _Number | None) -> _Number | None:
    return other if one is None else one if other is None else one + other


@dataclass(frozen=True, slots=True)
class HistogramCounts:
    """Numbers of durations between each two bounds; the last is above all."""

    counts: tuple[int, ...]
    sum: float  # seconds

    def __add__(self, other: Self) -> Self:
        pairs = zip(self.counts, other.counts, strict=True)
        counts = tuple(one + more for one, more in pairs)
        return type(self)(counts, self.sum + other.sum)


@dataclass(frozen=True, slots=True)
class TableCounts:
    """Ops of one table, and the seconds of transactions that ended with it."""

    ops: int
    seconds: HistogramCounts

    def __add__(self, other: Self) -> Self:
        return type(self)(self.ops + other.ops, self.seconds + other.seconds)


@dataclass(frozen=True, slots=True)
class SinkCounts:
    """Deliveries of one sink."""

    tables: Mapping[str, TableCounts]
    latency: HistogramCounts  # seconds from a commit to its last delivery
    delivered: int
    errors: int
    dropped: Mapping[str, int] = field(default_factory=dict)  # ops, by table
    left_out: int = 0  # records that the target had already

    def __add__(self, other: Self) -> Self:
        return type(self)(
            sums(self.tables, other.tables),
            self.latency + other.latency,
            self.delivered + other.delivered,
            self.errors + other.errors,
            sums(self.dropped, other.dropped),
            self.left_out + other.left_out,
        )


@dataclass(frozen=True, slots=True)
class PollCounts:
    """Polls of one table."""

    rows: int
    seconds: HistogramCounts  # of each poll
    # by outcome, and by the phase of the poll
    phases: Mapping[str, Mapping[str, HistogramCounts]]

    def __add__(self, other: Self) -> Self:
        phases = {
            outcome: sums(self.phases.get(outcome, {}), other.phases.get(outcome, {}))
            for outcome in dict.fromkeys([*self.phases, *other.phases])
        }
        rows = self.rows + other.rows
        return type(self)(rows, self.seconds + other.seconds, phases)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCounts:
    """Counts of one source; None where this kind of source has no such number."""

    tables: Mapping[str, TableCounts] = field(default_factory=dict)
    sinks: Mapping[str, SinkCounts] = field(default_factory=dict)
    polls: Mapping[str, PollCounts] = field(default_factory=dict)  # by polled table
    backfill_rows: int | None = None
    poisoned: int | None = None
    held_s: float | None = None  # for which a limit held the stream; None: it has none
    # requests for backfills by logical messages, by what became of them
    backfill_messages: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Self) -> Self:
        return type(self)(
            tables=sums(self.tables, other.tables),
            sinks=sums(self.sinks, other.sinks),
            polls=sums(self.polls, other.polls),
            backfill_rows=_sum(self.backfill_rows, other.backfill_rows),
            poisoned=_sum(self.poisoned, other.poisoned),
            held_s=_sum(self.held_s, other.held_s),
            backfill_messages=sums(self.backfill_messages, other.backfill_messages),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessCounts:
    """Counts of one worker's processes."""

    metrics: SourceCounts = field(default_factory=SourceCounts)
    errors: Mapping[str, int] = field(default_factory=dict)  # by kind
    deaths: int = 0  # of processes that nobody had asked to end

    def __add__(self, other: Self) -> Self:
        return type(self)(
            metrics=self.metrics + other.metrics,
            errors=sums(self.errors, other.errors),
            deaths=self.deaths + other.deaths,
        )
