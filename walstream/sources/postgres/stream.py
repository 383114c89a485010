"""One stream from a slot into sinks: opened from a position, run, closed in order."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from walstream.config import PostgresSource
from walstream.lsn import NEVER, Lsn
from walstream.pipeline.checkpoint import Checkpointer, StartPoint, StoredBeside
from walstream.pipeline.commit_times import CommitTimes
from walstream.pipeline.limited_source import LimitedSource, SlotFrames
from walstream.pipeline.loop import Pipeline
from walstream.pipeline.ports import Position, Sink, StateStore
from walstream.pipeline.sent_position import Given, Reach
from walstream.pipeline.shutdown import Stop
from walstream.postgres.capture import Capture
from walstream.postgres.companion import CompanionTable, SessionCompanion
from walstream.postgres.fact_book import FactRules
from walstream.postgres.heartbeat import Heartbeat
from walstream.postgres.server import Server
from walstream.postgres.stream import open_stream
from walstream.postgres.table_keys import KeyRules
from walstream.sources.figures import STREAM_FIGURES
from walstream.sources.postgres.confirmation_log import ConfirmationLog
from walstream.sources.stream_metrics import StreamMetrics

_CLOSE_WAIT_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec:
    """From where to where, and what is known on the way."""

    name: str  # of the source
    source: PostgresSource
    server: Server
    position: Position
    slot_start: Lsn  # where the slot was confirmed
    retain: int  # bytes of WAL to keep
    capture: Capture
    keys: KeyRules
    facts: FactRules
    sinks: Sequence[Sink]
    messages: bool  # whether some sink takes logical ones
    given: Given | None  # to sinks, as far as is known
    positions: StateStore
    accepts: bool  # an operator says that what is known of `given` is all
    heartbeat: float = 0.0  # seconds; 0: it writes none
    times: CommitTimes | None = None  # None: nobody rewinds it to a time


class StreamRun:
    """A stream that was asked for; `run` once."""

    def __init__(self, spec: StreamSpec, gauge: StreamMetrics, stop: Stop) -> None:
        self._gauge = gauge
        self._stop = stop
        wake = stop.waker.wake
        timelines = [spec.position.timeline]
        given, limit = spec.given, gauge.limit
        slot = open_stream(
            spec.source.dsn,
            spec.server,
            spec.position,
            source=spec.name,
            publications=spec.capture.read,
            messages=spec.messages,
            given=given.believed() if given and spec.accepts else given,
            report=timelines.append,
        )
        self.source: SlotFrames = LimitedSource(slot, limit) if limit else slot
        position = replace(spec.position, timeline=timelines[-1])
        self.reach = Reach(given, timelines[-1])
        self._checkpointer = Checkpointer(
            StartPoint(position, spec.retain, slot_start=spec.slot_start),
            spec.positions,
            self.source,
            wake,
            StoredBeside(
                lambda: STREAM_FIGURES.entry(gauge.kept()),
                spec.times,
                self.reach,
                self._confirmed,
            ),
        )
        dsn, beat_s = spec.source.dsn, spec.heartbeat
        self._companion = SessionCompanion(
            CompanionTable(
                dsn,
                position.slot,
                spec.capture,
                read_toast=spec.source.toast_on_key_change == "read",
                tell=gauge.see,
                heartbeat=Heartbeat(dsn, beat_s, gauge.beat) if beat_s else None,
                is_held=lambda: bool(limit and limit.held_by),
            ),
            spec.keys,
            spec.facts,
            wake,
        )
        self.pipeline = Pipeline(
            self.source, spec.sinks, self._companion, self._checkpointer, limit
        )
        self.pipeline.measure(gauge.meter)
        self._confirmations = ConfirmationLog(
            lambda: self.pipeline.fanout.delivered_ops, gauge.meter.tables
        )

    def _confirmed(self, lsn: Lsn) -> None:
        self._confirmations.note(lsn)

    def run(self, until: Lsn = NEVER) -> bool:
        """Stream until a stop, or `until`; False: a deadline cut the drain short."""
        self._gauge.attach(self.pipeline, self.source)
        wait_s = 0.0
        try:
            drained = self.pipeline.run(self._stop, until)
            wait_s = _CLOSE_WAIT_S if drained else 0.0
        finally:
            self.source.close(wait_s=wait_s)
            self._companion.close()
            self._checkpointer.close()
            self._gauge.detach()
        return drained
