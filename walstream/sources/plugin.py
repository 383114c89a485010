"""A source that an installed package adds, as its worker runs it.

It yields the frames of PostgreSQL's streaming replication; keys are those that its
Relation messages mark. It has no server to ask beside it.
"""

from contextlib import ExitStack
from typing import Final

import structlog

from walstream import plugins
from walstream.config import PackageSource
from walstream.errors import ConfigError, Transient
from walstream.lsn import Lsn, show
from walstream.op import ReplicationOp
from walstream.pipeline.checkpoint import Checkpointer, StartPoint, StoredBeside
from walstream.pipeline.column_history import NO_FACTS, FactHistory, Labels
from walstream.pipeline.loop import Pipeline
from walstream.pipeline.pgoutput.messages import Relation
from walstream.pipeline.ports import NamedSink, Position, Source
from walstream.pipeline.root_key import Place
from walstream.pipeline.row_key import KeyHistory, KeySet
from walstream.postgres.slot_health import Alarm
from walstream.sources.context import SourceContext
from walstream.sources.figures import STREAM_FIGURES
from walstream.sources.report import StreamReport
from walstream.sources.sinks import SinkSet, all_ready
from walstream.sources.stream_metrics import StreamMetrics
from walstream.telemetry import runtime
from walstream.telemetry.counts import SourceCounts
from walstream.telemetry.fields import LSN

_LOOK_EVERY_S: Final = 0.05
_NO_SLOT: Final = 1 << 62  # bytes: no WAL is held anywhere
_log = structlog.get_logger()


class PluginRunner:
    """Makes streams of one source, and keeps what outlives them."""

    def __init__(self, context: SourceContext) -> None:
        name, positions, stop = context.name, context.positions, context.stop
        source = context.config.sources[name]
        if not isinstance(source, PackageSource):
            raise ConfigError(f"source {name!r} is not a package's")
        self._name = name
        self._source = source
        self._positions = positions
        self._stop = stop
        alarm = Alarm(name, _NO_SLOT, runtime.monotonic)
        kept = STREAM_FIGURES.read(positions)
        self._gauge = StreamMetrics(alarm, kept)
        self._sinks = SinkSet(context, {}, stopping=lambda: stop.requested)
        self._pipeline: Pipeline | None = None
        self.ended = False

    def run(self) -> bool:
        """Stream until a stop; False: its deadline cut the drain short."""
        with ExitStack() as stack:
            # there is no system identifier: its name says whose records they are
            sinks = self._sinks.open(f"0/{self._name}", (), stack)
            self._wait_for(sinks)
            position = self._positions.position() or Position(0, 0, 0, "", self._name)
            source = self._open(position.resume)
            stack.callback(getattr(source, "close", _nothing))
            return self._stream(source, sinks, position)

    def _wait_for(self, sinks: list[NamedSink]) -> None:
        while not all_ready(sinks):
            if self._stop.event.wait(_LOOK_EVERY_S):
                raise Transient("stopped while waiting for a sink")

    def _open(self, resume: Lsn) -> Source:
        key = f"sources.{self._name}"
        given = self._name, self._source.options, resume
        made: Source = plugins.make(plugins.SOURCES, self._source.kind, key, *given)
        return made

    def _stream(
        self, source: Source, sinks: list[NamedSink], position: Position
    ) -> bool:
        gauge = self._gauge
        checkpointer = Checkpointer(
            StartPoint(position),
            self._positions,
            source,
            self._stop.waker.wake,
            StoredBeside(lambda: STREAM_FIGURES.entry(gauge.kept())),
        )
        companion = PlainCompanion(self._sinks)
        self._pipeline = Pipeline(source, sinks, companion, checkpointer)
        gauge.attach(self._pipeline, _Unasked())
        _log.info("streaming", **{LSN: show(position.resume)})
        try:
            return self._pipeline.run(self._stop)
        finally:
            checkpointer.close()
            gauge.detach()

    @property
    def flowed(self) -> bool:
        return self._gauge.has_streamed

    @property
    def phase(self) -> str:
        return "streaming" if self._gauge.streaming else ""

    def say_drained(self, *, drained: bool) -> None:
        """Log how a stop went, if there was a stream."""
        if self._pipeline is not None:
            said = "drained" if drained else "stopped before everything was delivered"
            _log.info(said, **{LSN: show(self._pipeline.confirmed)})

    def report(self) -> StreamReport:
        return self._gauge.report()

    def counts(self) -> SourceCounts:
        return self._gauge.counts()


class PlainCompanion:
    """Knows of a table what its Relation message says."""

    def __init__(self, sinks: SinkSet) -> None:
        self._sinks = sinks

    def keys(self, relation: Relation, _xid: int, _place: Place) -> KeyHistory:
        keys = KeySet(
            0,
            tuple(column.name for column in relation.columns if column.is_key),
            self._sinks.partition_key(relation.namespace, relation.name),
        )
        return KeyHistory([keys])

    def facts(
        self, _relation: Relation, _xid: int, _place: Place, _labels: Labels = ()
    ) -> FactHistory:
        return NO_FACTS

    def complete(self, _op: ReplicationOp) -> bool:
        """Leave what was not sent: its record names it."""
        return True

    def tick(self, *, paused: bool) -> None:
        """Do nothing."""


class _Unasked:
    """A source that no server's lag is known of."""

    received = 0

    def ask(self) -> None:
        """Ask nobody."""


def _nothing() -> None:
    pass
