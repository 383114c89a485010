"""A sink that is detached: its own worker streams to it, from a copy of the slot.

It reads the source's state to know what names its ops, and where to end: there the
source's stream takes the sink back.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

import structlog

from walstream.errors import (
    RESET,
    SINK_AGAIN,
    ConfigError,
    SlotLost,
    Transient,
    WalstreamError,
)
from walstream.kafka.delivered_tails import StreamStart
from walstream.kafka.registry.stored_schema import SCHEMAS, lent
from walstream.kafka.replay_mark import REPLAY
from walstream.lsn import Lsn, show
from walstream.pipeline.loop import Pipeline
from walstream.pipeline.ports import Position, Sink
from walstream.pipeline.sent_position import GIVEN
from walstream.postgres import catalog, preflight
from walstream.postgres import server as servers
from walstream.postgres import slot as slots
from walstream.postgres.capture import Capture
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection, session
from walstream.postgres.fact_book import NoFacts
from walstream.postgres.missing_rows import Mending
from walstream.postgres.publication_memory import PUBLICATIONS
from walstream.postgres.selection import Selection
from walstream.postgres.server import Server
from walstream.postgres.slot_health import Alarm
from walstream.postgres.start_table import Step, decide
from walstream.sources.context import SourceContext
from walstream.sources.figures import STREAM_FIGURES
from walstream.sources.postgres.detached.detached_sink import (
    AWAY,
    DETACHED,
    ENDED,
    JOINS,
    HandoverPoint,
)
from walstream.sources.postgres.detached.source_state import (
    BorrowedFacts,
    BorrowedKeys,
    SourceFolder,
)
from walstream.sources.postgres.stored_state import stored_of
from walstream.sources.postgres.stream import StreamRun, StreamSpec
from walstream.sources.postgres.stream_limit import LimitWatch, limit_of
from walstream.sources.report import StreamReport
from walstream.sources.sinks import SinkSet
from walstream.sources.stream_metrics import StreamMetrics
from walstream.telemetry import runtime
from walstream.telemetry.counts import SourceCounts
from walstream.telemetry.fields import LSN, SINK, SLOT

_LOOK_EVERY_S: Final = 0.2
_log = structlog.get_logger()


class JoinWatch:
    """Callback that sets the end of a pipeline once the source's state has one.

    Another place that comes later is for the next stream: this one ends at the first.
    """

    def __init__(
        self, state: SourceFolder, sink: str, tell: Callable[[Lsn], None]
    ) -> None:
        self._state = state
        self._sink = sink
        self._tell = tell
        self._over = runtime.event()
        self.place: Lsn | None = None
        self._thread = runtime.start_thread(self._run, "join")

    def _run(self) -> None:
        document = JOINS.of(self._sink)
        while self.place is None and not self._over.wait(_LOOK_EVERY_S):
            with contextlib.suppress(WalstreamError):  # it is being written
                join = self._state.read(document.read)
                self.place = join.at if join else None
        if self.place is not None:
            self._tell(self.place)

    def close(self) -> None:
        self._over.set()
        self._thread.join()


@contextlib.contextmanager
def lost_alone(sink: str, source: str) -> Iterator[None]:
    """Return a context where a lost slot concerns the sink alone: others stream on.

    A reset of the source would take their slot and position, too.
    """
    try:
        yield
    except SlotLost as error:
        if error.repair.of_source(source) != RESET.of_source(source):
            raise
        raise SlotLost(
            str(error.args[0]),
            hint=f"what sink {sink!r} lacks is gone, unless the state folder is an old "
            "copy, from before the sink was back; the source's other sinks stream on. "
            f"{SINK_AGAIN.then}",
            repair=SINK_AGAIN,
        ) from error


class DetachedSinkRunner:
    """One detached sink, as its worker runs it: one stream after the other."""

    def __init__(self, context: SourceContext) -> None:
        """Take the sink from the options; the context's positions are its own."""
        config, name, positions = context.config, context.name, context.positions
        self._source = source = config.postgres_source(name)
        self._sink = context.options.sink
        self._accepts = context.options.accept_timeline
        self._folder = Path(config.state) / name
        self._state = SourceFolder(self._folder)
        self._positions = positions
        self._stop = context.stop
        self._slot = ""
        self._sinks = SinkSet(context, {}, stopping=self._stopping)
        limit = limit_of(config, source)
        self._gauge = StreamMetrics(
            Alarm(
                source.slot,
                source.alarm_retained_wal,
                runtime.monotonic,
                spill_limit=source.alarm_spill,
                may_be_synchronous=source.allow_synchronous,
            ),
            STREAM_FIGURES.read(positions),
            limit,
            LimitWatch(limit) if limit else None,
        )
        self._sinks.meter = self._gauge.meter
        self._pipeline: Pipeline | None = None
        self.ended = False  # the sink is not away any more

    def run(self) -> bool:
        """Stream until a stop, or to where the source takes the sink back."""
        note = self._state.read(DETACHED.of(self._sink).read)
        if note is None or note.phase != AWAY:
            self.ended = True
            return True
        self._slot = self._gauge.alarm.slot = note.slot
        self._positions.write(ENDED.entry(None))
        known = SCHEMAS.keys(self._positions)  # a registry may be away now
        ids = self._state.read(lambda found: lent(found, self._sink, known))
        if ids:
            self._positions.write(ids)
        with ExitStack() as stack:
            stack.enter_context(lost_alone(self._sink, self._folder.name))
            with session(self._source.dsn) as connection:
                server, facts, slot_start = self._look(connection)
                capture = self._capture()
                captured = capture.captured(connection, facts)
            self._sinks.frozen_after_ms = server.frozen_after_ms
            self._sinks.delivered.detached = True
            self._sinks.delivered.replay = self._state.read(REPLAY.read)
            self._sinks.delivered.begin(
                StreamStart(self._position().resume, server.flush_lsn, repeats=True)
            )
            sinks = self._sinks.open(
                server.origin, captured.values(), stack, names={self._sink}
            )
            self._gauge.follow(sinks)
            return self._stream(server, slot_start, capture, sinks)

    def _look(
        self, connection: Connection
    ) -> tuple[Server, Mapping[str, TableFacts], Lsn]:
        """Compare the position with the copy; give where that is confirmed."""
        server = servers.look(connection)
        servers.check(
            server,
            self._source.encoding,
            resuming=True,
            allow_synchronous=self._source.allow_synchronous,
        )
        slot = slots.find(connection, self._slot)
        self._gauge.see(slots.health(connection, self._slot))
        stored = stored_of(self._positions, self._slot)
        decision = decide(self._folder.name, stored, slot, server, adopt=False)
        if slot is None or stored.position is None:
            raise Transient("its slot is being copied")
        if decision.step is Step.WAIT:
            raise preflight.in_use(connection, slot, adopt=False)
        return server, catalog.tables(connection), slot.confirmed_flush_lsn or 0

    def _capture(self) -> Capture:
        capture = Capture(
            self._source.dsn,
            self._source.publication,
            Selection([]),  # the source's own worker extends it
            keep=self._positions.write,
            # what the sink's source reads anew, it does when the sink is back
            mending=Mending(elsewhere=True),
        )
        capture.recall(PUBLICATIONS.read(self._positions))
        return capture

    def _stream(
        self,
        server: Server,
        slot_start: Lsn,
        capture: Capture,
        sinks: Sequence[Sink],
    ) -> bool:
        position = self._position()
        spec = StreamSpec(
            name=self._folder.name,
            source=self._source,
            server=server,
            position=position,
            slot_start=slot_start,
            retain=0,
            capture=capture,
            keys=BorrowedKeys(self._state),
            facts=BorrowedFacts(self._state) if self._sinks.want_facts else NoFacts(),
            sinks=sinks,
            messages=self._sinks.want_messages,
            given=GIVEN.read(self._positions),
            positions=self._positions,
            accepts=self._accepts,
        )
        flow = StreamRun(spec, self._gauge, self._stop)
        self._accepts = False  # of this timeline, not of the next
        self._pipeline = pipeline = flow.pipeline

        def end_at(place: Lsn) -> None:
            pipeline.end_at(place)
            flow.source.ask()
            self._stop.waker.wake()

        join = JoinWatch(self._state, self._sink, end_at)
        said = {SINK: self._sink, SLOT: self._slot, LSN: show(position.resume)}
        _log.info("streaming to a detached sink", **said)
        with contextlib.closing(join):
            drained = flow.run()
        whole = drained and pipeline.fanout.proven
        if whole and pipeline.reached and join.place is not None:
            self._end(join.place)
        return drained

    def _end(self, place: Lsn) -> None:
        """Keep that all below `place` is delivered, though no commit ended there."""
        position = self._position()
        place = max(position.resume, place)
        ended = ENDED.entry(HandoverPoint(place))
        self._positions.store(replace(position, resume=place), ended)
        self.ended = True

    def _position(self) -> Position:
        position = self._positions.position()
        if position is None:
            raise ConfigError(f"sink {self._sink!r} has no position: a defect")
        return position

    def _stopping(self) -> bool:
        pipeline = self._pipeline
        return self._stop.requested or (pipeline is not None and pipeline.reached)

    @property
    def flowed(self) -> bool:
        return self._gauge.has_streamed

    @property
    def phase(self) -> str:
        return "streaming" if self._gauge.streaming else ""

    def say_drained(self, *, drained: bool) -> None:
        """Log how a stop went, if there was a stream."""
        if self._pipeline is not None:
            _log.info(
                "drained" if drained else "stopped before everything was delivered",
                **{SINK: self._sink, LSN: show(self._pipeline.confirmed)},
            )

    def report(self) -> StreamReport:
        return replace(self._gauge.report(), slot=self._slot)

    def counts(self) -> SourceCounts:
        return self._gauge.counts()
