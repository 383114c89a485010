"""One stream of a PostgreSQL source: from the start table to a running pipeline.

Composes what the adapters offer. A session ends by a stop, or by an error; after one
that passes, the worker begins the next from the position in LMDB.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog

from walstream.backfill.backfill import Backfill, Site, Surroundings, hold
from walstream.beginning import PUBLICATIONS, Beginning, Begun, tell_of_waiting
from walstream.beside.backfill import Backfill as BesideBackfill
from walstream.beside.progress import Progress
from walstream.beside.threads import Threads
from walstream.config import Config, PostgresSource
from walstream.errors import ConfigError, Restart, Transient
from walstream.gauge import Gauge
from walstream.ledger import Transaction
from walstream.lsn import Lsn, show
from walstream.metrics import LSN, SLOT
from walstream.op import Table, snapshot_truncate
from walstream.options import Options
from walstream.pipeline import NEVER, Confirming, Pipeline
from walstream.ports import NamedSink, Position
from walstream.position_writer import PositionWriter
from walstream.positions import LmdbPositions
from walstream.postgres import catalog
from walstream.postgres import server as servers
from walstream.postgres.capture import Capture
from walstream.postgres.catalog import TableFacts
from walstream.postgres.companion import KeyBook, SessionCompanion, Watched
from walstream.postgres.connection import Connection, connect, session, translate
from walstream.postgres.server import Server
from walstream.postgres.start import Step
from walstream.postgres.stream import open_stream
from walstream.sinks import SinkSet
from walstream.spark.keyset import KeysetReader
from walstream.spark.reader import Database
from walstream.stop import Stop

_CLOSE_WAIT_S: Final = 1.0
_LOOK_EVERY_S: Final = 0.05
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Stage:
    """What one session found, and opened."""

    server: Server
    facts: Mapping[str, TableFacts]
    captured: Mapping[str, TableFacts]  # and what is left to backfill
    sinks: list[NamedSink]
    keys: KeyBook
    slot_start: Lsn


class Session:
    """One source's composition of adapters; `run` streams until stop or error."""

    def __init__(  # noqa: PLR0913 - what a worker has, once for each stream
        self,
        config: Config,
        name: str,
        positions: LmdbPositions,
        options: Options,
        stop: Stop,
        *,
        gauge: Gauge,
        progress: Progress,
        seen_topics: dict[str, set[str]],
    ) -> None:
        """`seen_topics` of earlier sessions, by sink, are looked at from the start."""
        source = config.sources[name]
        if not isinstance(source, PostgresSource):
            raise ConfigError(f"source {name!r} is no postgres source")
        self._name = name
        self._source = source
        self._positions = positions
        self._stop = stop
        self._gauge = gauge
        self._only = options.end_backfilled
        self._site = Site(
            config,
            name,
            source,
            positions,
            gauge,
            stop,
            driver=options.driver,
            asked=self._only,
        )
        self._progress = progress
        self._capture = Capture(
            source.dsn,
            source.publication,
            source.tables,
            keep=lambda found: positions.write({PUBLICATIONS: found}),
            grown=progress.ask if source.backfill == "initial" else lambda _: None,
        )
        self._backfill = Backfill(self._site)
        self._beginning = Beginning(
            self._site, positions, options, self._capture, self._backfill
        )
        self._sinks = SinkSet(
            config,
            name,
            positions,
            options,
            seen_topics,
            stopping=lambda: stop.requested,
        )
        self.pipeline: Pipeline | None = None
        self.ended = False  # there is nothing left to do, now or later

    def run(self) -> bool:
        """Stream until stop; False: its deadline cut the drain short."""
        if not self._backfill.await_orphans():
            return False
        if self._source.backfill == "only":
            return self._run_only()
        with ExitStack() as stack:
            with session(self._source.dsn) as connection:
                server = self._look(connection)
                facts = catalog.tables(connection)
                decision = self._beginning.decide(connection, server)
                captured = self._capture.captured(connection, facts)
                create = decision.step is Step.CREATE
                self._beginning.check(connection, captured, create=create)
            sinks = self._open(server, captured, stack)
            known = self._backfill.known(captured, facts)
            begun = self._beginning.begin(
                decision, server, facts, lambda: self._wait_for(sinks)
            )
            if begun.holder is not None:
                stack.callback(begun.holder.close)
            keys = KeyBook(self._positions, self._sinks.partition_key)
            # a rewind may go back to what the slot can still send
            keys.learn(captured, server.flush_lsn, begun.slot_start)
            stage = _Stage(server, facts, known, sinks, keys, begun.slot_start)
            self._fence(stage)
            if self._backfill.pending:
                if not self._fill(begun, stage):
                    return False
            elif begun.holder is not None:
                begun.holder.close()
            if self._only:
                return self._end()
            return self._stream(stage)

    def _end(self) -> bool:
        self._backfill.check_complete()
        self.ended = True
        return True

    def _look(self, connection: Connection) -> Server:
        server = servers.look(connection)
        resuming = self._positions.position() is not None
        servers.check(server, self._source.encoding, resuming=resuming)
        return server

    def _open(
        self, server: Server, captured: Mapping[str, TableFacts], stack: ExitStack
    ) -> list[NamedSink]:
        """Make the sinks; they look at the topics of all that will be sent."""
        self._sinks.check(captured.values())
        for schema, name in self._backfill.places:
            self._sinks.expect(schema, name)
        return self._sinks.open(server.origin, captured.values(), stack)

    def _run_only(self) -> bool:
        """Backfill without a stream, and without a slot that stays; then end."""
        with ExitStack() as stack:
            with session(self._source.dsn) as connection:
                server = self._look(connection)
                facts = catalog.tables(connection)
                captured = self._capture.captured(connection, facts)
                if not self._beginning.begin_only(connection, captured):
                    self.ended = True
                    return True
            sinks = self._open(server, captured, stack)
            known = self._backfill.known(captured, facts)
            keys = KeyBook(self._positions, self._sinks.partition_key)
            stage = _Stage(server, facts, known, sinks, keys, slot_start=0)
            self._wait_for(sinks)
            self._fence(stage)
            holder = hold(self._site, tell=tell_of_waiting)
            begun = Begun(slot_start=0, holder=holder)
            return self._fill(begun, stage) and self._end()

    def _wait_for(self, sinks: list[NamedSink]) -> None:
        """Wait for Kafka before anything is created in PostgreSQL, or read there."""
        # a list: each sink is asked, whatever another says
        self._await(lambda: all([sink.ready() for sink in sinks]))  # noqa: C419

    def _fence(self, stage: _Stage) -> None:
        """See that tasks of an earlier start, which ran elsewhere, send no more."""
        if self._backfill.unfenced:
            self._wait_for(stage.sinks)
            self._backfill.fence(self._sinks.header(stage.server.origin))

    def _await(self, done: Callable[[], bool]) -> None:
        while not done():
            if self._stop.event.wait(_LOOK_EVERY_S):
                raise Transient("stopped while waiting for Kafka")

    def _fill(self, begun: Begun, stage: _Stage) -> bool:
        """Bring a backfill to its end; False: a stop came first.

        Under another snapshot than the new slot's own, the stream goes up to it first.
        """
        held = begun.holder or hold(self._site, tell=tell_of_waiting)
        with closing(held) as holder:
            self._wait_for(stage.sinks)
            if self._came_late(stage):
                raise Restart("tables came into the publication while it began")
            if begun.holder is None and not self._stream_up_to(holder.point, stage):
                return False
            around = Surroundings(
                facts=stage.captured,
                publications=sorted(self._capture.remembered),
                topics={sink.name: sink.topics for sink in stage.sinks},
                header=self._sinks.header(stage.server.origin),
                empty=partial(self._empty, stage.sinks),
            )
            return self._backfill.run(holder, around)

    def _came_late(self, stage: _Stage) -> bool:
        """Tell whether a table is to be read of which this session does not know."""
        strange = self._backfill.strange(stage.captured)
        if not strange:
            return False
        with session(self._source.dsn) as connection:
            return not strange.isdisjoint(catalog.tables(connection))

    def _stream_up_to(self, point: Lsn, stage: _Stage) -> bool:
        """Stream what committed below; False: a stop came first."""
        drained = self._stream(stage, until=point)
        if self.pipeline is None or not (drained and self.pipeline.reached):
            return False
        position = self._stored()
        if position.resume < point:
            self._positions.store(replace(position, resume=point))
        return True

    def _empty(
        self, sinks: list[NamedSink], table: Table, lsn: Lsn, chunk: int
    ) -> None:
        """Let a table's readers empty it; see that delivered."""
        op = snapshot_truncate(table, lsn, chunk)
        transaction = Transaction(lsn)
        for sink in sinks:
            sink.send(op, transaction)
        self._await(
            # a list, as above
            lambda: (
                all([sink.ready() for sink in sinks])  # noqa: C419
                and not transaction.undelivered
            )
        )

    def _stored(self) -> Position:
        position = self._positions.position()
        if position is None:
            raise ConfigError(f"source {self._name!r} has no position: a defect")
        return position

    def _stream(self, stage: _Stage, until: Lsn = NEVER) -> bool:
        position = self._stored()
        timelines = [position.timeline]
        source = open_stream(
            self._source.dsn,
            stage.server,
            position,
            source=self._name,
            publications=sorted(self._capture.remembered),
            report=timelines.append,
        )
        position = replace(position, timeline=timelines[-1])
        gauge = self._gauge
        writer = PositionWriter(
            lambda reached: self._positions.store(reached, {"figures": gauge.kept()}),
            self._stop.waker.wake,
        )
        companion = SessionCompanion(
            Watched(
                self._source.dsn,
                position.slot,
                self._capture,
                read_toast=self._source.toast_on_key_change == "read",
                tell=gauge.see,
            ),
            stage.keys,
            stage.facts,
            self._stop.waker.wake,
        )
        self.pipeline = Pipeline(
            source,
            stage.sinks,
            companion,
            writer,
            Confirming(position, self._source.retain, slot_start=stage.slot_start),
        )
        threads = Threads(self._stop.waker.wake)
        gauge.attach(self.pipeline, source, stage.sinks)
        said = {SLOT: position.slot, LSN: show(position.resume)}
        if until == NEVER:
            self.pipeline.let_in(self._beside(threads, source.ask))
            _log.info("streaming", **said)
        else:
            _log.info("catching up with a new snapshot", **said, until=show(until))
        wait_s = 0.0
        try:
            drained = self.pipeline.run(self._stop, until)
            wait_s = _CLOSE_WAIT_S if drained else 0.0
        finally:
            source.close(wait_s=wait_s)
            companion.close()
            threads.close()
            writer.close()
            gauge.detach()
        return drained

    def _beside(self, threads: Threads, ask: Callable[[], None]) -> BesideBackfill:
        """Make what reads tables beside the stream."""
        reader = KeysetReader(
            Database(self._source.dsn, connect, translate),
            lambda: sorted(self._capture.remembered),
        )
        return BesideBackfill(reader, self._progress, threads, ask)
