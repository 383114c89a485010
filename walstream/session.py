"""One stream of a PostgreSQL source: from the start table to a running pipeline.

Composes what the adapters offer. A session ends by a stop, or by an error; after one
that passes, the worker begins the next from the position in LMDB.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

import structlog

from walstream.beside.backfill import Backfill
from walstream.beside.progress import Progress
from walstream.beside.threads import Threads
from walstream.config import Config, PostgresSource
from walstream.errors import ConfigError, Transient
from walstream.gauge import Gauge
from walstream.kafka.sink import KafkaSink
from walstream.lsn import Lsn, show
from walstream.metrics import LSN, SLOT
from walstream.options import Options
from walstream.pipeline import Confirming, Pipeline
from walstream.ports import Position
from walstream.position_writer import PositionWriter
from walstream.positions import LmdbPositions
from walstream.postgres import catalog, creation, room
from walstream.postgres import server as servers
from walstream.postgres import slot as slots
from walstream.postgres.capture import Capture
from walstream.postgres.catalog import TableFacts
from walstream.postgres.companion import KeyBook, SessionCompanion, Watched
from walstream.postgres.connection import Connection, connect, session, translate
from walstream.postgres.server import Server
from walstream.postgres.start import Decision, Step, decide
from walstream.postgres.stream import open_stream
from walstream.sinks import SinkSet
from walstream.spark.keyset import KeysetReader
from walstream.spark.reader import Database
from walstream.stop import Stop
from walstream.stored import stored_of

_CLOSE_WAIT_S: Final = 1.0
_LOOK_EVERY_S: Final = 0.05
_log = structlog.get_logger()


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
        self._options = options
        self._stop = stop
        self._gauge = gauge
        self._progress = progress
        self._capture = Capture(
            source.dsn,
            source.publication,
            source.tables,
            keep=lambda found: positions.write({"publications": found}),
            grown=progress.ask if source.backfill == "initial" else lambda _: None,
        )
        self._sinks = SinkSet(config, name, positions, options, seen_topics)
        self._slot_start: Lsn = 0  # the slot's confirmed LSN when we found it
        self.pipeline: Pipeline | None = None

    def run(self) -> bool:
        """Stream until stop; False: its deadline cut the drain short."""
        with ExitStack() as stack:
            with session(self._source.dsn) as connection:
                server = servers.look(connection)
                resuming = self._positions.position() is not None
                servers.check(server, self._source.encoding, resuming=resuming)
                facts = catalog.tables(connection)
                decision = self._decide(connection, server)
                captured = self._capture.captured(connection, facts)
            self._sinks.check(captured.values())
            origin = f"{server.system_identifier}/{server.database}"
            sinks = self._sinks.open(origin, captured.values(), stack)
            position = self._begin(decision, server, sinks, facts)
            keys = KeyBook(self._positions, self._sinks.partition_key)
            # a rewind may go back to what the slot can still send
            keys.learn(captured, server.flush_lsn, self._slot_start)
            return self._stream(server, position, sinks=sinks, keys=keys, facts=facts)

    def _decide(self, connection: Connection, server: Server) -> Decision:
        stored = stored_of(self._positions, self._source.slot)
        slot = slots.find(connection, self._source.slot)
        self._gauge.see(slots.health(connection, self._source.slot))
        self._slot_start = (slot.confirmed_flush_lsn or 0) if slot else 0
        decision = decide(
            self._name, stored, slot, server, adopt=self._options.adopt_slot
        )
        if decision.step is Step.WAIT and slot is not None and slot.active_pid:
            if self._options.take_over:
                _log.warning("taking the slot over", pid=slot.active_pid)
                slots.take_over(self._source.dsn, slot.active_pid)
            raise room.in_use(connection, slot, adopt=self._options.adopt_slot)
        return decision

    def _begin(
        self,
        decision: Decision,
        server: Server,
        sinks: list[KafkaSink],
        facts: Mapping[str, TableFacts],
    ) -> Position:
        """Come to a position, and to publications to read, by the start table."""
        with session(self._source.dsn) as connection:
            stored = self._positions.position()
            if decision.step is Step.STREAM and stored is not None:
                remembered = self._positions.read("publications")
                self._capture.resume(connection, remembered, facts)
                return stored
            if decision.step is Step.CREATE:
                creation.check(connection, self._capture, facts)
        if decision.step is Step.CREATE:
            self._wait_for(sinks)
            return self._create(server)
        return self._adopt(decision, server)

    def _wait_for(self, sinks: list[KafkaSink]) -> None:
        """Wait for Kafka before anything is created in PostgreSQL."""
        # a list: each sink is asked, whatever another says
        while not all([sink.ready() for sink in sinks]):  # noqa: C419
            if self._stop.event.wait(_LOOK_EVERY_S):
                raise Transient("stopped while waiting for Kafka")

    def _create(self, server: Server) -> Position:
        """First start: intent, publication, slot, position, in this order."""
        source = self._source
        self._positions.write({"intent": {"slot": source.slot}})
        with session(source.dsn) as connection:
            self._capture.establish(connection)
        created = slots.create(
            source.dsn,
            source.slot,
            failover=source.failover,
            patience=slots.Patience(
                self._stop.event,
                lambda who: _log.warning(
                    "creating the slot waits for running transactions", sessions=who
                ),
            ),
        )
        created.connection.close()
        point = created.consistent_point
        _log.info("slot created", **{SLOT: source.slot, LSN: show(point)})
        self._slot_start = point
        return self._remember(server, point)

    def _adopt(self, decision: Decision, server: Server) -> Position:
        """Take a slot that is there: ours from a start cut short, or adopted."""
        with session(self._source.dsn) as connection:
            self._capture.recognise(connection)
        _log.info(
            "slot adopted",
            **{SLOT: self._source.slot, LSN: show(decision.resume)},
        )
        return self._remember(server, decision.resume)

    def _remember(self, server: Server, point: Lsn) -> Position:
        position = Position(
            resume=point,
            system_identifier=server.system_identifier,
            timeline=server.timeline,
            database=server.database,
            slot=self._source.slot,
        )
        self._positions.write(
            {
                "intent": {"slot": self._source.slot, "consistent_point": point},
                "publications": self._capture.remembered,
            }
        )
        self._positions.store(position)
        return position

    def _stream(
        self,
        server: Server,
        position: Position,
        *,
        sinks: list[KafkaSink],
        keys: KeyBook,
        facts: Mapping[str, TableFacts],
    ) -> bool:
        timelines = [position.timeline]
        source = open_stream(
            self._source.dsn,
            server,
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
            keys,
            facts,
            self._stop.waker.wake,
        )
        self.pipeline = Pipeline(
            source,
            sinks,
            companion,
            writer,
            Confirming(position, self._source.retain, slot_start=self._slot_start),
        )
        threads = Threads(self._stop.waker.wake)
        self.pipeline.let_in(self._beside(threads, source.ask))
        gauge.attach(self.pipeline, source, sinks)
        _log.info("streaming", **{SLOT: position.slot, LSN: show(position.resume)})
        wait_s = 0.0
        try:
            drained = self.pipeline.run(self._stop)
            wait_s = _CLOSE_WAIT_S if drained else 0.0
        finally:
            source.close(wait_s=wait_s)
            companion.close()
            threads.close()
            writer.close()
            gauge.detach()
        return drained

    def _beside(self, threads: Threads, ask: Callable[[], None]) -> Backfill:
        """Make what reads tables beside the stream."""
        reader = KeysetReader(
            Database(self._source.dsn, connect, translate),
            lambda: sorted(self._capture.remembered),
        )
        return Backfill(reader, self._progress, threads, ask)
