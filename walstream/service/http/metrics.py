"""The samples of `/metrics`, in Prometheus' formats."""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import accumulate
from typing import Final

import prometheus_client
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    UntypedMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family

from walstream import __version__
from walstream.config import Config, PostgresSource
from walstream.postgres.slot_health import SlotHealth
from walstream.service.http.board import Truth
from walstream.service.http.catalog import (
    METRICS,
    OLD_LABELS,
    PSQL_STREAMER_LABELS,
    PSQL_STREAMER_TYPES,
)
from walstream.status.model import SinkStatus, SlotStatus, SourceStatus
from walstream.telemetry import runtime
from walstream.telemetry.counts import (
    HistogramCounts,
    ProcessCounts,
    SinkCounts,
    SourceCounts,
)
from walstream.telemetry.meter import COARSE_S, LATENCY_S

_BOUNDS: Final = {
    "source_event_processing_time_sec": COARSE_S,
    "sink_event_processing_time_sec": COARSE_S,
    "walstream_poll_phase_seconds": COARSE_S,
}
_Labels = tuple[str, ...]
_Plain = CounterMetricFamily | GaugeMetricFamily | UntypedMetricFamily
_FAMILIES: Final[Mapping[str, Callable[..., _Plain | HistogramMetricFamily]]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
    "untyped": UntypedMetricFamily,
}
_OF_SLOT: Final = {  # by the field of a slot's health
    "retained_wal": "walstream_slot_retained_wal_bytes",
    "safe_wal_size": "walstream_slot_safe_wal_bytes",
    "spill_txns": "walstream_slot_spill_transactions_total",
    "spill_bytes": "walstream_slot_spill_bytes_total",
    "spilled": "walstream_slot_spilled_bytes",
}
_FRESH_S: Final = 0.5
_UNNAMED: Final = ""  # the table of what belongs to none


def write(config: Config, truth: Truth, accept: str) -> tuple[bytes, str]:
    """Return an exposition in a format that the scraper accepts, and its type."""
    registry = prometheus_client.CollectorRegistry(auto_describe=False)
    registry.register(_Once(Collection(config, truth).families()))
    encode, content_type = prometheus_client.exposition.choose_encoder(accept)
    return encode(registry), content_type


class CachedMetrics:
    """The last answer: with many tables it costs more than all other requests."""

    def __init__(self, clock: Callable[[], float] = runtime.monotonic) -> None:
        self._clock = clock
        self._of: tuple[float, str] | None = None  # which snapshot, and for whom
        self._at = 0.0
        self._answer = b"", ""

    def of(self, config: Config, truth: Truth, accept: str) -> tuple[bytes, str]:
        """Return an answer that is of this snapshot and at most half a second old."""
        of, now = (truth.snapshot.made_at, accept), self._clock()
        if of != self._of or now - self._at >= _FRESH_S:
            self._answer = write(config, truth, accept)
            self._of, self._at = of, now
        return self._answer


class _Once:
    """A collector of samples that were collected before."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Family]:
        return self._families

    def describe(self) -> Iterable[Family]:
        return ()


class Collection:
    """All samples of one moment. Unknown values have none."""

    def __init__(self, config: Config, truth: Truth) -> None:
        self._config = config
        self._truth = truth
        self._as_psql_streamer = config.http.metric_labels == "psql-streamer"
        self._families = {
            name: _family(name, as_psql_streamer=self._as_psql_streamer)
            for name in METRICS
        }
        # several sources may feed one sink, which has one name there
        self._old: dict[tuple[str, _Labels], int] = {}
        self._old_times: dict[tuple[str, _Labels], HistogramCounts] = {}

    def families(self) -> Iterator[Family]:
        """Yield the families that have samples."""
        build = (__version__, platform.python_version())
        self._add("walstream_build_info", build, 1)
        self._add("walstream_start_time_seconds", (), self._truth.snapshot.started_at)
        if self._config.http.token:
            wrong = self._truth.wrong_tokens
            self._add("walstream_http_wrong_tokens_total", (), wrong)
        for source in self._truth.status.sources:
            self._source(source)
            counted = _counted(self._truth.snapshot.counted, source)
            self._counters(source, counted)
            if source.kind == "sql":
                self._polled(source, counted)
            elif source.kind == "kafka":
                self._chained(source, counted)
            for sink in source.sinks:
                self._sink(source, sink, counted.metrics.sinks.get(sink.name))
        for (name, labels), value in self._old.items():
            self._add(name, labels, value)
        for (name, labels), times in self._old_times.items():
            self._observe(name, labels, times)
        for family in self._families.values():
            if family.samples:
                yield family

    def _add(self, name: str, labels: _Labels, value: float | None) -> None:
        family = self._families[name]
        if value is not None and not isinstance(family, HistogramMetricFamily):
            family.add_metric(list(labels), value)

    def _old_labels(self, name: str, labels: _Labels) -> _Labels:
        """Return the labels of an old name, as psql-streamer has them if it is to."""
        if not self._as_psql_streamer:
            return labels
        part, _, _ = name.partition("_")
        name_, kind, table = labels
        return name_, PSQL_STREAMER_TYPES.get((part, kind), kind), table

    def _sum(self, name: str, labels: _Labels, value: int) -> None:
        """Add what goes by an old name, which may stand for several objects."""
        key = name, self._old_labels(name, labels)
        self._old[key] = self._old.get(key, 0) + value

    def _sum_times(self, name: str, labels: _Labels, times: HistogramCounts) -> None:
        """Add likewise a histogram."""
        key = name, self._old_labels(name, labels)
        before = self._old_times.get(key)
        self._old_times[key] = times if before is None else before + times

    def _observe(self, name: str, labels: _Labels, times: HistogramCounts) -> None:
        """Add a histogram: counts between bounds, which Prometheus wants summed up."""
        family = self._families[name]
        if isinstance(family, HistogramMetricFamily):
            bounds = [*map(str, _BOUNDS.get(name, LATENCY_S)), "+Inf"]
            buckets = list(zip(bounds, accumulate(times.counts), strict=True))
            family.add_metric(list(labels), buckets, times.sum)

    def _source(self, source: SourceStatus) -> None:
        name = (source.name,)
        well = not (source.exit_code or source.problems)
        self._add("walstream_source_up", (source.name, source.kind), well)
        self._add("walstream_replication_lag_bytes", name, source.lag_bytes)
        self._add("walstream_replication_lag_seconds", name, source.lag_s)
        config = self._config.sources[source.name]
        if isinstance(config, PostgresSource):
            alarm = config.alarm_retained_wal
            self._add("walstream_slot_alarm_wal_bytes", name, alarm)
            self._add(
                "walstream_slot_alarm_spill_bytes", name, config.alarm_spill or None
            )
        if (slot_now := source.slot) is not None:
            labels = source.name, slot_now.name
            self._add("walstream_slot_synchronous", labels, slot_now.synchronous)
        for slot, health in self._slots(source):
            for field, metric in _OF_SLOT.items():
                self._add(metric, (source.name, slot), getattr(health, field))
            if wal := health.wal_status:
                self._add("walstream_slot_wal_status", (source.name, slot, wal), 1)
        left = [one for one in source.beside.values() if one.state != "done"]
        if (backfill := source.backfill) is not None or source.beside:
            tables = len(backfill.tables) if backfill else 0
            self._add("walstream_backfill_left_tables", name, tables + len(left))

    def _slots(
        self, source: SourceStatus
    ) -> Iterator[tuple[str, SlotStatus | SlotHealth]]:
        """Yield the figures of its slot, and of those of its detached sinks."""
        if source.slot is not None:
            yield source.slot.name, source.slot
        for name, worker in self._truth.snapshot.away.items():
            told = worker.report.stream
            if name.partition("/")[0] == source.name and told and told.health:
                yield told.slot or name, told.health

    def _counters(self, source: SourceStatus, counted: ProcessCounts) -> None:
        errors = {**counted.errors, "died": counted.deaths}
        for kind, number in errors.items():
            self._add("walstream_errors_total", (source.name, kind), number)
        old = (source.name, source.kind)
        self._sum("source_errors", (*old, _UNNAMED), sum(errors.values()))
        metrics = counted.metrics
        rows = metrics.backfill_rows
        self._add("walstream_backfill_rows_total", (source.name,), rows)
        held_s = metrics.held_s
        self._add("walstream_limit_held_seconds_total", (source.name,), held_s)
        for result, count in metrics.backfill_messages.items():
            labels = source.name, result
            self._add("walstream_backfill_messages_total", labels, count)
        for table, one in metrics.tables.items():
            self._add("walstream_ops_total", (source.name, table), one.ops)
            self._sum("source_events", (*old, table), one.ops)
            if source.kind != "kafka":  # its records are in no transaction
                name = "source_event_processing_time_sec"
                self._sum_times(name, (*old, table), one.seconds)

    def _sink(
        self, source: SourceStatus, sink: SinkStatus, counted: SinkCounts | None
    ) -> None:
        name = (source.name, sink.name)
        ended = source.state == "stopped" and not source.exit_code
        up = sink.state == "delivering" or (ended and sink.state == "stopped")
        self._add("walstream_sink_up", (*name, sink.kind), up)
        self._add("walstream_in_flight", name, sink.in_flight)
        if counted is None:
            return
        for table, dropped in counted.dropped.items():
            self._add("walstream_dropped_total", (*name, table), dropped)
        self._add("walstream_delivered_total", name, counted.delivered)
        if source.kind == "postgres" and sink.kind == "kafka":
            self._add("walstream_skipped_delivered_total", name, counted.left_out)
        if source.kind != "kafka":
            latency = "walstream_end_to_end_latency_seconds"
            self._observe(latency, name, counted.latency)
        old = (sink.name, sink.kind)
        self._sum("sink_errors", (*old, _UNNAMED), counted.errors)
        for table, one in counted.tables.items():
            self._sum("sink_events", (*old, table), one.ops)
            if source.kind != "kafka":
                seconds = "sink_event_processing_time_sec"
                self._sum_times(seconds, (*old, table), one.seconds)

    def _polled(self, source: SourceStatus, counted: ProcessCounts) -> None:
        """Add what is told of polled tables, whose rows are their ops."""
        for table, one in source.tables.items():
            self._add("walstream_poll_position", (source.name, table), one.position)
        polls = counted.metrics.polls
        for table, counts in polls.items():
            name, rows = (source.name, table), counts.rows
            self._add("walstream_poll_rows_total", name, rows)
            self._observe("walstream_poll_seconds", name, counts.seconds)
            for outcome, phases in counts.phases.items():
                for phase, spent in phases.items():
                    labels = (*name, phase, outcome)
                    self._observe("walstream_poll_phase_seconds", labels, spent)
            self._add("walstream_ops_total", name, rows)
            self._sum("source_events", (source.name, source.kind, table), rows)
            for sink in source.sinks:
                self._sum("sink_events", (sink.name, sink.kind, table), rows)
        if polls:
            rows = sum(one.rows for one in polls.values())
            for sink in source.sinks:
                name = (source.name, sink.name)
                self._add("walstream_delivered_total", name, rows)

    def _chained(self, source: SourceStatus, counted: ProcessCounts) -> None:
        """Add what is told of records that were passed on."""
        name = (source.name,)
        self._add("walstream_upstream_lag_records", name, source.lag_records)
        self._add("walstream_poisoned_total", name, counted.metrics.poisoned)


def _family(name: str, *, as_psql_streamer: bool) -> _Plain | HistogramMetricFamily:
    metric = METRICS[name]
    labels = metric.labels
    if as_psql_streamer and labels == OLD_LABELS:
        part, _, _ = name.partition("_")
        labels = PSQL_STREAMER_LABELS[part]
    return _FAMILIES[metric.kind](name, metric.meaning, labels=labels)


def _counted(
    all_counted: Mapping[str, ProcessCounts], source: SourceStatus
) -> ProcessCounts:
    """Return what a source's worker counted, with those of its detached sinks."""
    found = all_counted.get(source.name, ProcessCounts())
    for sink in source.sinks:
        own = all_counted.get(f"{source.name}/{sink.name}")
        if own is not None:
            # what it read, the source's own worker reads too
            found += replace(own, metrics=SourceCounts(sinks=own.metrics.sinks))
    return found
