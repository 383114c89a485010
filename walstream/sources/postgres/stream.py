"""One stream from a slot into sinks: opened from a position, run, closed in order."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from walstream.config import PostgresSource
from walstream.errors import WalstreamError
from walstream.lsn import NEVER, Lsn
from walstream.pipeline.checkpoint import Confirming
from walstream.pipeline.checkpoint_writer import PositionWriter
from walstream.pipeline.loop import Pipeline
from walstream.pipeline.ports import Position, Sink
from walstream.pipeline.shutdown import Stop
from walstream.postgres.capture import Capture
from walstream.postgres.companion import SessionCompanion, Watched
from walstream.postgres.heartbeat import Heartbeat
from walstream.postgres.sent_position import Given, Reach, document
from walstream.postgres.server import Server
from walstream.postgres.stream import open_stream
from walstream.postgres.table_keys import Keys
from walstream.sources.stream_metrics import Gauge

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
    keys: Keys
    sinks: Sequence[Sink]
    given: Given | None  # to sinks, as far as is known
    keep: Callable[[Mapping[str, Any]], None]  # documents, with fsync
    accepts: bool  # an operator says that what is known of `given` is all
    heartbeat: float = 0.0  # seconds; 0: it writes none


class Keeper(Protocol):
    """Who keeps the position, and may hear of transactions."""

    def store(self, position: Position, beside: Mapping[str, Any]) -> None:
        """Store the position, and what belongs to it, with fsync."""

    def note(self, lsn: Lsn, time: int) -> None:
        """Hear of a transaction that begins: its commit's LSN and time."""


class Flow:
    """A stream that was asked for; `run` once."""

    def __init__(
        self, spec: StreamSpec, keeper: Keeper, gauge: Gauge, stop: Stop
    ) -> None:
        """`keeper` stores the positions."""
        self._gauge = gauge
        self._stop = stop
        self._keeper = keeper
        self._keep = spec.keep
        wake = stop.waker.wake
        timelines = [spec.position.timeline]
        given = spec.given
        self.source = open_stream(
            spec.source.dsn,
            spec.server,
            spec.position,
            source=spec.name,
            publications=sorted(spec.capture.remembered),
            given=given.believed() if given and spec.accepts else given,
            report=timelines.append,
        )
        self._reach = Reach(given, timelines[-1])
        position = replace(spec.position, timeline=timelines[-1])
        self._writer = PositionWriter(
            self._store, wake, keeper.note, self._reach.admits
        )
        dsn, beat_s = spec.source.dsn, spec.heartbeat
        self._companion = SessionCompanion(
            Watched(
                dsn,
                position.slot,
                spec.capture,
                read_toast=spec.source.toast_on_key_change == "read",
                tell=gauge.see,
                heartbeat=Heartbeat(dsn, beat_s, gauge.beat) if beat_s else None,
            ),
            spec.keys,
            wake,
        )
        self.pipeline = Pipeline(
            self.source,
            spec.sinks,
            self._companion,
            self._writer,
            Confirming(position, spec.retain, slot_start=spec.slot_start),
        )
        self.pipeline.measure(gauge.meter)

    def _store(self, reached: Position) -> None:
        given = self._reach.ahead(reached.resume)
        beside = {"figures": self._gauge.kept(), **document(given)}
        self._keeper.store(reached, beside)
        self._reach.keep(given)

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
            self._writer.close()
            with suppress(WalstreamError):  # what is kept is ahead of it
                self._keep(document(self._reach.exact()))
            self._gauge.detach()
        return drained
