"""Progress of a source: reported by its worker, and stored with the position.

Read by the reporting thread and by the thread that stores positions while the loop
runs: it only looks at plain numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, cast

import structlog

from walstream.lsn import WAL_PAGE_HEADER, Lsn, show
from walstream.op import EPOCH_S
from walstream.pipeline.loop import Pipeline
from walstream.pipeline.ports import NamedSink
from walstream.pipeline.rate_limit import RateLimit
from walstream.pipeline.reattach import JoiningSink
from walstream.postgres.slot_health import (
    Alarm,
    SlotHealth,
)
from walstream.sources.figures import StreamFigures
from walstream.sources.report import BackfillReport, SinkReport, StreamReport
from walstream.telemetry import runtime
from walstream.telemetry.counts import SourceCounts
from walstream.telemetry.meter import (
    Meter,
    Rate,
)
from walstream.telemetry.tally import Tallies

_log = structlog.get_logger()


class Received(Protocol):
    """A source that tells how far its server has sent."""

    @property
    def received(self) -> Lsn: ...

    def ask(self) -> None:
        """Make the server say soon how far it is."""


class LagObserver(Protocol):
    """Something that wants to know how far a slot is behind."""

    def see(self, slot: str, lag_bytes: int | None) -> None:
        """Take in the lag; called every some seconds."""


class StreamMetrics:
    """One source's figures, over all its streams."""

    def __init__(
        self,
        alarm: Alarm,
        kept: StreamFigures | None,
        limit: RateLimit | None = None,
        watch: LagObserver | None = None,
    ) -> None:
        """`kept` is what `kept` gave when the position was last stored.

        `limit` is what may hold the streams, and `watch` sees the lag then.
        """
        kept = kept or StreamFigures()
        self.alarm = alarm
        self.limit = limit
        self._watch = watch
        self._held_s_said = 0.0
        self.health: SlotHealth | None = None
        self._ops = kept.ops  # of earlier streams
        self._delivered = kept.delivered
        self.tallies = Tallies(kept.sinks)
        self._current_at = kept.current_at
        self._pipeline: Pipeline | None = None
        self._source: Received | None = None
        self._beat: Lsn = 0  # where the last heartbeat's WAL ends
        self._read_rate, self._delivered_rate = Rate(), Rate()
        self._opened: Sequence[NamedSink] = ()  # for the stream, or its beginning
        self.meter = Meter()
        self.backfill: Callable[[], BackfillReport] | None = None  # while one runs
        self.backfilled = 0  # rows, by what ran before in this process
        self._backfilled_said = 0
        self.has_streamed = False  # in this process, for however short a time

    def follow(self, sinks: Sequence[NamedSink]) -> None:
        """Report these until there is a stream, which knows its own."""
        self._opened = sinks

    def attach(self, pipeline: Pipeline, source: Received) -> None:
        """Follow a new stream."""
        self.detach()
        self._pipeline, self._source = pipeline, source
        self.has_streamed = True

    @property
    def _sinks(self) -> list[NamedSink]:
        """Those that are sent to now, but for who is on its way back."""
        pipeline = self._pipeline
        sinks = pipeline.fanout.sinks if pipeline else self._opened
        found = [
            cast("NamedSink", sink)
            for sink in sinks
            if not isinstance(sink, JoiningSink)
        ]
        self.tallies.follow(found)
        return found

    def detach(self) -> None:
        """Keep the figures of a stream that ended."""
        if self._pipeline is not None:
            self._ops, self._delivered = self.ops, self.delivered
        self._pipeline = self._source = None
        self._opened = ()

    @property
    def streaming(self) -> bool:
        return self._pipeline is not None

    def see(self, health: SlotHealth | None) -> None:
        """Take in how the slot is."""
        self.health = health
        self.alarm.see(health)
        if self._watch is not None:
            self._watch.see(self.alarm.slot, self._lag_bytes())
        if source := self._source:
            source.ask()

    def beat(self, lsn: Lsn) -> None:
        """Take in that a heartbeat was written, up to there."""
        self._beat = lsn
        if source := self._source:
            source.ask()

    @property
    def ops(self) -> int:
        """Numbers read since the last reset; what was repeated counts again."""
        pipeline = self._pipeline  # another thread may detach it
        return self._ops + (pipeline.ops_read if pipeline else 0)

    @property
    def delivered(self) -> int:
        """Ops in fully delivered transactions, counted likewise."""
        pipeline = self._pipeline
        return self._delivered + (pipeline.fanout.delivered_ops if pipeline else 0)

    def lag_s(self, now: float) -> float | None:
        """Return the age of the oldest change that is not delivered; None: not known.

        0: all that the server had when it was last asked is delivered.
        """
        pipeline, source = self._pipeline, self._source
        oldest = pipeline.fanout.oldest_commit_time if pipeline else None
        if oldest is not None:
            return max(0.0, now - (oldest / 1e6 + EPOCH_S))
        end = max(self._beat, self.health.flush_lsn if self.health else 0)
        if source and end and source.received + WAL_PAGE_HEADER >= end:
            self._current_at = now
        if self._current_at == 0:
            return None
        return max(0.0, now - self._current_at)

    def kept(self) -> StreamFigures:
        """Return what is stored with the position."""
        now = runtime.time()
        self.lag_s(now)
        return StreamFigures(
            now, self.ops, self.delivered, self.tallies.kept(), self._current_at
        )

    def _rows_backfilled(self) -> int:
        """Return what Spark delivered in this process; it never falls."""
        running = self.backfill
        now = self.backfilled + (running().rows if running else 0)
        self._backfilled_said = max(self._backfilled_said, now)
        return self._backfilled_said

    def _held_s(self) -> float | None:
        """Return for how long the limit held the streams; it never falls."""
        if self.limit is None:
            return None
        self._held_s_said = max(self._held_s_said, self.limit.held_s)
        return self._held_s_said

    def _lag_bytes(self) -> int | None:
        """Return the WAL that the server has and Kafka does not, as last heard."""
        health, pipeline, source = self.health, self._pipeline, self._source
        if health is None or pipeline is None:
            return None
        end = max(health.flush_lsn, source.received if source else 0)
        if not pipeline.confirmed:
            return None
        behind = end - pipeline.confirmed
        return behind if behind > WAL_PAGE_HEADER else 0

    def report(self) -> StreamReport:
        """Return the figures of this moment."""
        now = runtime.time()
        monotonic = runtime.monotonic()
        pipeline, source = self._pipeline, self._source
        health, backfill = self.health, self.backfill
        return StreamReport(
            resume=show(pipeline.confirmed) if pipeline else None,
            ops=self.ops,
            delivered=self.delivered,
            ops_per_s=self._read_rate.of(monotonic, self.ops),
            delivered_per_s=self._delivered_rate.of(monotonic, self.delivered),
            lag_s=self.lag_s(now),
            retained_wal=health.retained_wal if health else None,
            alarm=self.alarm.text,
            backfill=backfill() if backfill else None,
            sinks={sink.name: self._sink_report(sink) for sink in self._sinks},
            current_at=self._current_at or None,
            lag_bytes=self._lag_bytes(),
            health=health,
            received=source.received if source else None,
            held_by=self.limit.held_by if self.limit else "",
            turn_s=monotonic - pipeline.turned_at if pipeline else None,
        )

    def counts(self) -> SourceCounts:
        """Return what this process counted."""
        counts = self.meter.report()
        sinks = {
            name: replace(one, dropped=self.tallies.dropped(name))
            for name, one in counts.sinks.items()
        }
        return replace(
            counts,
            sinks=sinks,
            backfill_rows=self._rows_backfilled(),
            held_s=self._held_s(),
        )

    def _sink_report(self, sink: NamedSink) -> SinkReport:
        meter = self.meter.sink(sink.name)
        waiting, outage = sink.waiting, sink.outage
        meter.see(waiting=waiting)
        totals = self.tallies.totals(sink.name)
        return SinkReport(
            waiting=waiting,
            handler_waits=sink.handler_waits,
            outage=outage if waiting else None,
            in_flight=sink.in_flight,
            dropped=sink.tally.dropped.total(),
            records=meter.records if meter.counts_records else None,
            left_out=meter.left_out,
            errors=meter.errors,
            skipped=totals.skipped,
            failed=totals.failed,
            parked=totals.parked,
            tables=totals.tables,
            parked_now=totals.parked_now,
        )
