"""One stream from a slot into sinks: opened from a position, run, closed in order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from walstream.config import PostgresSource
from walstream.gauge import Gauge
from walstream.keeping import Confirming
from walstream.lsn import NEVER, Lsn
from walstream.pipeline import Pipeline
from walstream.ports import Position, Sink
from walstream.position_writer import PositionWriter
from walstream.postgres.capture import Capture
from walstream.postgres.companion import SessionCompanion, Watched
from walstream.postgres.heartbeat import Heartbeat
from walstream.postgres.key_book import Keys
from walstream.postgres.server import Server
from walstream.postgres.stream import open_stream
from walstream.stop import Stop

_CLOSE_WAIT_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Course:
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
        self, course: Course, keeper: Keeper, gauge: Gauge, stop: Stop
    ) -> None:
        """`keeper` stores the positions."""
        self._gauge = gauge
        self._stop = stop
        wake = stop.waker.wake
        timelines = [course.position.timeline]
        self.source = open_stream(
            course.source.dsn,
            course.server,
            course.position,
            source=course.name,
            publications=sorted(course.capture.remembered),
            report=timelines.append,
        )
        position = replace(course.position, timeline=timelines[-1])
        self._writer = PositionWriter(
            lambda reached: keeper.store(reached, {"figures": gauge.kept()}),
            wake,
            keeper.note,
        )
        dsn, beat_s = course.source.dsn, course.heartbeat
        self._companion = SessionCompanion(
            Watched(
                dsn,
                position.slot,
                course.capture,
                read_toast=course.source.toast_on_key_change == "read",
                tell=gauge.see,
                heartbeat=Heartbeat(dsn, beat_s, gauge.beat) if beat_s else None,
            ),
            course.keys,
            wake,
        )
        self.pipeline = Pipeline(
            self.source,
            course.sinks,
            self._companion,
            self._writer,
            Confirming(position, course.retain, slot_start=course.slot_start),
        )
        self.pipeline.measure(gauge.meter)

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
            self._gauge.detach()
        return drained
