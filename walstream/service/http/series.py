"""Samples of each source: the last five minutes and the last hour.

Every object is replaced, never changed: one thread writes, others read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from walstream.sources.report import PollReport, StreamReport, WorkerReport
from walstream.status.snapshot import InstanceSnapshot
from walstream.status.worker_state import WorkerState
from walstream.telemetry.counts import HistogramCounts, ProcessCounts

SAMPLES: Final = 150  # of a chart
EVERY_S: Final = 2.0
_IN_HOUR: Final = 12  # samples of five minutes that are one of the hour
_RATES_OVER: Final = 6  # samples: ten seconds


class ChartSpan(Enum):
    """The time that charts show."""

    MINUTES = "5m"
    HOUR = "1h"

    @property
    def seconds(self) -> float:
        return EVERY_S * SAMPLES * (1 if self is ChartSpan.MINUTES else _IN_HOUR)

    @classmethod
    def of(cls, text: str) -> "ChartSpan":
        """Return the span of a query; five minutes for any other text."""
        return cls.HOUR if text == cls.HOUR.value else cls.MINUTES


@dataclass(frozen=True, slots=True)
class Sample:
    """One moment of one source."""

    at: float  # unix seconds
    lag_s: float | None
    ops_per_s: float | None
    # since walstream started, by sink: from a commit to its delivery
    latency: Mapping[str, HistogramCounts] = field(default_factory=dict)


Samples = Mapping[str, Sequence[Sample]]
"""By source, the oldest first."""


class Series:
    """Samples of each source, a bounded number."""

    def __init__(self) -> None:
        self._taken = 0
        self._taken_at: float | None = None
        self._counted: tuple[tuple[float, Mapping[str, ProcessCounts]], ...] = ()
        self.minutes: Samples = {}
        self.hour: Samples = {}

    def of(self, span: ChartSpan) -> Samples:
        return self.minutes if span is ChartSpan.MINUTES else self.hour

    def see(self, snapshot: InstanceSnapshot, now: float) -> None:
        """Take a sample every two seconds."""
        if self._taken_at is not None and now - self._taken_at < EVERY_S:
            return
        self._taken_at = now
        self._taken += 1
        taken = {
            name: _sample(snapshot, name, worker)
            for name, worker in snapshot.sources.items()
        }
        self.minutes = _appended(self.minutes, taken)
        if self._taken % _IN_HOUR == 0:
            merged = {
                name: _merged(self.minutes[name][-_IN_HOUR:]) for name in self.minutes
            }
            self.hour = _appended(self.hour, merged)
        kept = self._counted[-_RATES_OVER + 1 :]
        self._counted = (*kept, (now, snapshot.counted))

    def table_rates(self, source: str) -> dict[str, float]:
        """Return how many ops a second were read of each table lately."""
        counted = self._counted
        if not counted:
            return {}
        (began, first), (ended, last) = counted[0], counted[-1]
        if ended <= began or source not in last:
            return {}
        before = first.get(source, ProcessCounts()).metrics.tables
        return {
            table: (one.ops - (before[table].ops if table in before else 0))
            / (ended - began)
            for table, one in last[source].metrics.tables.items()
        }

    def latency(self, source: str, sink: str) -> HistogramCounts | None:
        """Return the latencies of the last five minutes; None: there were none."""
        seen = [
            sample.latency[sink]
            for sample in self.minutes.get(source, ())
            if sink in sample.latency
        ]
        if not seen:
            return None
        first, last = seen[0], seen[-1]
        pairs = zip(last.counts, first.counts, strict=True)
        found = HistogramCounts(
            tuple(now - before for now, before in pairs), last.sum - first.sum
        )
        return found if any(found.counts) else None


def _appended(before: Samples, taken: Mapping[str, Sample]) -> Samples:
    """Add one sample each; sources that are gone are forgotten."""
    return {
        name: (*before.get(name, ()), sample)[-SAMPLES:]
        for name, sample in taken.items()
    }


def _merged(samples: Sequence[Sample]) -> Sample:
    """Return the greatest lag and the mean rate: no peak of a lag is lost."""
    lags = [one.lag_s for one in samples if one.lag_s is not None]
    rates = [one.ops_per_s for one in samples if one.ops_per_s is not None]
    return Sample(
        samples[-1].at,
        max(lags, default=None),
        sum(rates) / len(rates) if rates else None,
    )


def _sample(snapshot: InstanceSnapshot, name: str, worker: WorkerState) -> Sample:
    """Return what a worker says now; a gap where it says nothing."""
    latency = _latencies(snapshot.counted, name)
    if worker.pid is None or worker.silent:
        return Sample(snapshot.at, None, None, latency)
    stream = worker.report.stream
    lag_s = stream.lag_s if stream else None
    return Sample(snapshot.at, lag_s, _rate(worker.report), latency)


def _latencies(
    counted: Mapping[str, ProcessCounts], source: str
) -> dict[str, HistogramCounts]:
    """Return them by sink, also of sinks that are detached."""
    found: dict[str, HistogramCounts] = {}
    for name, counts in counted.items():
        if name.partition("/")[0] == source:
            for sink, one in counts.metrics.sinks.items():
                before = found.get(sink)
                found[sink] = before + one.latency if before else one.latency
    return found


def _rate(report: WorkerReport) -> float | None:
    source = report.source
    if source is None:
        return None
    if isinstance(source, PollReport):
        return sum(one.rows_per_s or 0.0 for one in source.tables.values())
    if isinstance(source, StreamReport) and source.backfill:
        return source.backfill.rows_per_s
    return source.ops_per_s
