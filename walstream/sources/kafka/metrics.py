"""Progress of a kafka source: reported by its worker, and stored."""

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import structlog

from walstream.errors import WalstreamError
from walstream.kafka.topic_limits import DEFAULT_LIMIT
from walstream.sources.figures import RELAY_FIGURES, RelayFigures
from walstream.sources.kafka.envelope import Table
from walstream.sources.kafka.lease import PartitionLease
from walstream.sources.report import RelayReport, SinkReport
from walstream.telemetry import runtime
from walstream.telemetry.counts import SourceCounts
from walstream.telemetry.json_codec import Document
from walstream.telemetry.meter import (
    Meter,
    Rate,
    TableMeter,
)

_WRITE_EVERY_S: Final = 10.0
_STEADY_S: Final = 3.0
_CAUSES: Final = 100  # that are told apart
_log = structlog.get_logger()


class RelayMetrics:
    """One source's figures, over all its memberships; read by the reporting thread."""

    def __init__(
        self,
        kept: RelayFigures | None,
        write: Callable[[Document], None] = lambda _: None,
    ) -> None:
        """`kept` is what was last written."""
        self._write = write
        self._write_at = runtime.monotonic() + _WRITE_EVERY_S
        kept = kept or RelayFigures()
        self.read = kept.ops  # records, repeats too
        self.delivered = kept.delivered
        self.poisoned = dict(kept.poisoned)  # by cause
        self._poisoned_now = 0  # by this process
        self.dropped = dict(kept.dropped)  # by sink
        self.lag: int | None = None  # records that wait in our partitions
        self.away = ""  # why the upstream brokers do not answer
        self.unstored = ""  # why the group's offsets are not stored
        self._away_said = False
        self._away_at = 0.0
        self.streaming = False
        self.has_streamed = False  # in this process
        self.sinks: dict[str, SinkReport] = {}
        self.meter = Meter()
        self._meters: dict[Table | None, TableMeter] = {}
        self._read_rate, self._delivered_rate = Rate(), Rate()

    def see_away(self, away: str) -> None:
        """Take in why the upstream brokers do not answer; say it once, and its end.

        A broker that starts may answer, and be away once more.
        """
        self.away = away
        now = runtime.monotonic()
        if away:
            self._away_at = now
        if away and not self._away_said:
            self._away_said = True
            _log.warning(away)
        elif self._away_said and now - self._away_at > _STEADY_S:
            self._away_said = False
            _log.info("upstream Kafka answers again")

    def count(self, table: Table | None) -> None:
        """Count a record that was passed on, or over; None: it is of no table."""
        found = self._meters.get(table)
        if found is None:
            name = ".".join(filter(None, table)) if table else ""
            found = self._meters[table] = self.meter.tables.of(name)
        found.ops += 1

    def poison(self, cause: str) -> bool:
        """Count a record that is not an op; return whether its cause is new."""
        if cause not in self.poisoned and len(self.poisoned) >= _CAUSES:
            cause = "others"
        count = self.poisoned.get(cause, 0)
        self._poisoned_now += 1
        # another thread may be at it
        self.poisoned = {**self.poisoned, cause: count + 1}
        return not count

    def see_sinks(self, reports: Mapping[str, SinkReport]) -> None:
        """Take in how the sinks are."""
        self.sinks = dict(reports)
        dropped = {name: report.dropped or 0 for name, report in reports.items()}
        self.dropped = {**self.dropped, **dropped}

    def write(self, *, now: bool = False) -> None:
        """Write them now and then, with an fsync; a full disk stops no record."""
        if now or runtime.monotonic() >= self._write_at:
            self._write_at = runtime.monotonic() + _WRITE_EVERY_S
            with contextlib.suppress(WalstreamError):
                self._write(RELAY_FIGURES.entry(self.kept()))

    def kept(self) -> RelayFigures:
        """Return what is stored."""
        return RelayFigures(
            runtime.time(), self.read, self.delivered, self.poisoned, self.dropped
        )

    def counts(self) -> SourceCounts:
        """Return what this process counted."""
        counts, sinks = self.meter.report(), {}
        for name, one in counts.sinks.items():
            told = self.sinks.get(name) or SinkReport()
            meter = self.meter.sink(name)
            meter.see(waiting=told.waiting)
            dropped = {table: found["dropped"] for table, found in told.tables.items()}
            sinks[name] = replace(one, delivered=meter.records, dropped=dropped)
        return replace(counts, sinks=sinks, poisoned=self._poisoned_now)

    def report(self) -> RelayReport:
        """Return the figures of this moment."""
        now = runtime.monotonic()
        return RelayReport(
            ops=self.read,
            delivered=self.delivered,
            ops_per_s=self._read_rate.of(now, self.read),
            delivered_per_s=self._delivered_rate.of(now, self.delivered),
            lag_records=self.lag,
            poisoned=self.poisoned,
            upstream_away=self.away,  # `away` tells of detached sinks
            unstored=self.unstored,
            sinks=self.sinks,
        )


class Lasting:
    """The sizes that a sink's topics take, and what it dropped."""

    def __init__(self, leash: PartitionLease, dropped: int = 0) -> None:
        """Go on from what earlier processes dropped."""
        self.leash = leash  # the same for all memberships
        # the smallest and the largest max.message.bytes that were met
        self.limits = (DEFAULT_LIMIT, DEFAULT_LIMIT)
        self.dropped = dropped
        self._by_table: Counter[str] = Counter()  # dropped by this process

    def see(self, limit: int) -> None:
        """Take in what one more topic takes."""
        smallest, largest = self.limits
        self.limits = min(smallest, limit), max(largest, limit)

    def drop(self, table: str) -> bool:
        """Count a record that has no topic; tell whether its table is new."""
        self.dropped += 1
        self._by_table[table] += 1
        return self._by_table[table] == 1

    @property
    def tables(self) -> dict[str, dict[str, int]]:
        """Return what this process dropped, by table; from any thread."""
        return {name: {"dropped": n} for name, n in dict(self._by_table).items()}
