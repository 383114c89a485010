"""One session of a PostgreSQL source: from the start table to its stream.

Composes what the adapters offer. Here stands what comes before the stream, which is
`session_stream`'s. A session ends by a stop, or by an error; after one that passes, the
worker begins the next from the position in LMDB.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from functools import partial
from typing import Final

import structlog

from walstream.config import PostgresSource
from walstream.errors import ConfigError, Restart, Transient
from walstream.kafka.delivered_tails import StreamStart
from walstream.lsn import NEVER, Lsn, show
from walstream.op import Table, postgres_time, snapshot_truncate
from walstream.pipeline.ledger import alone
from walstream.pipeline.loop import Pipeline
from walstream.pipeline.ports import NamedSink
from walstream.postgres import catalog
from walstream.postgres import server as servers
from walstream.postgres.capture_report import CaptureReport
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection, session
from walstream.postgres.fact_book import FactBook, FactRules, NoFacts
from walstream.postgres.server import Server
from walstream.postgres.start_table import Decision, Step
from walstream.postgres.table_keys import KeyBook
from walstream.sources.context import SourceContext
from walstream.sources.postgres import stored_state
from walstream.sources.postgres.backfill.run import SnapshotBackfill, hold
from walstream.sources.postgres.backfill.site import Site, Surroundings
from walstream.sources.postgres.bootstrap import Beginning, Begun, tell_of_waiting
from walstream.sources.postgres.detached.membership import SinkMembership
from walstream.sources.postgres.detached.slot_copy import Home
from walstream.sources.postgres.incremental.progress import IncrementalProgress
from walstream.sources.postgres.publications import capture_of
from walstream.sources.postgres.session_stream import SessionStream, Stage
from walstream.sources.sinks import SinkSet, all_ready
from walstream.sources.stream_metrics import StreamMetrics
from walstream.telemetry import runtime

_LOOK_EVERY_S: Final = 0.05
_log = structlog.get_logger()


class SourceSession:
    """One source's composition of adapters; `run` streams until stop or error."""

    def __init__(  # noqa: PLR0913 - what outlives a session
        self,
        context: SourceContext,
        *,
        gauge: StreamMetrics,
        progress: IncrementalProgress,
        seen_topics: dict[str, set[str]],
        until: Lsn = NEVER,
        hear: Callable[[str, bytes], None] | None = None,
    ) -> None:
        """`seen_topics` of earlier sessions, by sink, are looked at from the start.

        With `until` it ends when all that committed below that is confirmed. `hear` is
        told of each logical message.
        """
        config, name, positions = context.config, context.name, context.positions
        options, stop = context.options, context.stop
        source = config.sources[name]
        if not isinstance(source, PostgresSource):
            raise ConfigError(f"source {name!r} is not a postgres source")
        self._name = name
        self._source = source
        self._positions = positions
        self._stop = stop
        self._gauge = gauge
        self._progress = progress
        self._only = options.end_backfilled
        self._until = until
        self._site = Site(
            config,
            name,
            source,
            positions,
            gauge,
            stop,
            driver=options.driver,
            asked=self._only,
            hear=hear,
        )
        self._capture = capture_of(config, name, source, positions, progress)
        self._backfill = SnapshotBackfill(self._site)
        self._beginning = Beginning(
            self._site, positions, options, self._capture, self._backfill
        )
        self._sinks = SinkSet(
            context, seen_topics, stopping=self._stopping, meter=gauge.meter
        )
        self.members: SinkMembership | None = None
        self._stream = SessionStream(
            self._site,
            positions,
            self._capture,
            progress,
            accepts=options.accept_timeline,
        )
        self.ended = False  # there is nothing left to do, now or later

    @property
    def capture(self) -> CaptureReport:
        return self._capture.report()

    @property
    def pipeline(self) -> Pipeline | None:
        """The last stream's; None: none began."""
        return self._stream.pipeline

    def run(self) -> bool:
        """Stream until stop; False: its deadline cut the drain short."""
        if not self._backfill.await_orphans():
            return False
        if self._source.backfill == "only":
            return self._run_only()
        with ExitStack() as stack:
            with session(self._source.dsn) as connection:
                server = self._look(connection)
                facts, end = catalog.tables_and_end(connection)
                decision = self._beginning.decide(connection, server)
                captured = self._capture.captured(connection, facts)
                create = decision.step is Step.CREATE
                self._beginning.check(connection, captured, create=create)
            self._sinks.delivered.begin(self._start(server, decision))
            self._fence(server)
            sinks = self._open(server, captured, stack)
            known = self._backfill.known(captured, facts)
            begun = self._beginning.begin(
                decision, server, facts, lambda: self._wait_for(sinks)
            )
            if begun.holder is not None:
                stack.callback(begun.holder.close)
            keys = KeyBook(self._positions, self._sinks.partition_key)
            away = self.members.oldest if self.members else NEVER
            # a rewind may go back to what the slot can still send
            oldest = min(begun.slot_start, away)
            unsent = stored_state.take_unsent(self._positions, server.flush_lsn)
            keys.learn(captured, end, oldest, unsent)
            columns = self._facts_of_columns(unsent, oldest)
            stage = Stage(
                server,
                facts,
                known,
                sinks,
                keys,
                begun.slot_start,
                columns,
                self._sinks.want_messages,
            )
            if self._backfill.pending and not self._away:
                if not self._fill(begun, stage):
                    return False
            elif begun.holder is not None:
                begun.holder.close()
            if self._only:
                return self._end()
            return self._run_stream(stage)

    def _start(self, server: Server, decision: Decision) -> StreamStart:
        """Return where the stream begins; one that creates its slot repeats nothing."""
        position = self._positions.position()
        creates = decision.step is Step.CREATE
        repeats = not creates and stored_state.may_repeat(self._positions)
        resume = position.resume if position else decision.resume
        return StreamStart(
            resume, server.flush_lsn, repeats, self._until, creates=creates
        )

    def _facts_of_columns(self, unsent: Lsn, oldest: Lsn) -> FactRules:
        if not self._sinks.want_facts:
            return NoFacts()
        return FactBook(self._positions, unsent=unsent, oldest=oldest)

    def _run_stream(self, stage: Stage) -> bool:
        if self._until == NEVER:
            return self._stream.run(stage, self.members, self._backfill)
        if self._away and self.members is not None:
            raise ConfigError(
                f"sink {min(self.members.away)!r} is detached: it would miss what"
                " --until-lsn streams",
                hint="walstream run without it brings the sink back",
            )
        drained = self._stream.run(stage, self.members, self._backfill, self._until)
        self.ended = drained and self._stream.reached
        return drained

    def check_delivered(self) -> None:
        """Log that a run up to an LSN sent all; raise ChunkFailed for what it left."""
        self._backfill.check_complete()
        self._progress.check_complete()
        _log.info("everything up to the LSN is delivered", until=show(self._until))

    def _stopping(self) -> bool:
        return self._stop.requested or self._stream.reached

    def _end(self) -> bool:
        self._backfill.check_complete()
        self.ended = True
        return True

    def _look(self, connection: Connection) -> Server:
        server = servers.look(connection)
        resuming = self._positions.position() is not None
        servers.check(
            server,
            self._source.encoding,
            resuming=resuming,
            allow_synchronous=self._source.allow_synchronous,
            generated=self._source.generated == "stored",
        )
        return server

    def _open(
        self, server: Server, captured: Mapping[str, TableFacts], stack: ExitStack
    ) -> list[NamedSink]:
        """Make the sinks; they look at the topics of all that will be sent."""
        self._sinks.check(captured.values())
        for schema, name in self._backfill.places:
            self._sinks.expect(schema, name)
        away = self._settle(stack)
        self._sinks.frozen_after_ms = server.frozen_after_ms
        open_ = partial(self._sinks.open, server.origin, captured.values(), stack)
        sinks = open_(names=set(self._sinks.names) - away)
        self._gauge.follow(sinks)
        if self.members is not None:
            self.members.opens(lambda name: open_(names={name}, joins=True)[0])
        return sinks

    @property
    def _away(self) -> bool:
        """Return whether a sink would miss what is not in the stream."""
        return self.members is not None and bool(self.members.away)

    def _settle(self, stack: ExitStack) -> set[str]:
        """Name the sinks that are not in the stream, since they were detached."""
        given_up = [
            name
            for name in self._source.sinks
            if self._site.config.sinks[name].on_failure == "drop"
        ]
        home = Home.of(self._site.config, self._name)
        members = SinkMembership(
            home, self._positions, self._stop.waker.wake, given_up=given_up
        )
        stack.callback(members.close)
        gone = members.settle(self._source.sinks)
        if members.away and self._backfill.pending and self._only:
            raise ConfigError(
                f"sink {min(members.away)!r} is detached, and would miss the rows of "
                "the requested backfill",
                hint="walstream run sends them when the sink is back",
            )
        self.members = members
        return gone

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
            self._fence(server)
            sinks = self._open(server, captured, stack)
            known = self._backfill.known(captured, facts)
            keys = KeyBook(self._positions, self._sinks.partition_key)
            stage = Stage(server, facts, known, sinks, keys, slot_start=0)
            self._wait_for(sinks)
            holder = hold(self._site, tell=tell_of_waiting)
            begun = Begun(slot_start=0, holder=holder)
            return self._fill(begun, stage) and self._end()

    def _wait_for(self, sinks: list[NamedSink]) -> None:
        """Wait for Kafka before anything is created in PostgreSQL, or read there."""
        self._await(lambda: all_ready(sinks))

    def _fence(self, server: Server) -> None:
        """See that tasks of an earlier start send no more, before sinks look at it."""
        if self._backfill.unfenced:
            self._backfill.fence(self._sinks.header(server.origin))

    def _await(self, done: Callable[[], bool]) -> None:
        while not done():
            if self._stop.event.wait(_LOOK_EVERY_S):
                raise Transient("stopped while waiting for Kafka")

    def _fill(self, begun: Begun, stage: Stage) -> bool:
        """Bring a backfill to its end; False: a stop came first.

        Under another snapshot than the new slot's own, the stream goes up to it first.
        """
        held = begun.holder or hold(self._site, tell=tell_of_waiting)
        with closing(held) as holder:
            self._wait_for(stage.sinks)
            holder.check()  # a server that was promoted since may not come to its point
            if self._came_late(stage):
                raise Restart("tables joined the publication during the start")
            if begun.holder is None and not self._run_up_to(holder.point, stage):
                return False
            around = Surroundings(
                facts=stage.captured,
                publications=self._capture.read,
                topics={sink.name: sink.topics for sink in stage.sinks},
                header=self._sinks.header(stage.server.origin),
                empty=partial(self._empty, stage.sinks),
                ids=partial(self._sinks.registered.wait, self._await),
                column_facts=self._sinks.want_facts,
            )
            places = self._backfill.places
            whole = self._backfill.run(holder, around)
            self._sinks.written(stage.sinks, places)
            return whole

    def _run_up_to(self, point: Lsn, stage: Stage) -> bool:
        """Stream what committed below; False: a stop came first."""
        self._sinks.delivered.end_at(stage.sinks, point)
        reached = self._stream.run_up_to(point, stage)
        self._sinks.delivered.end_at(stage.sinks, self._until)
        return reached

    def _came_late(self, stage: Stage) -> bool:
        """Return whether a table is to be read of which this session does not know."""
        strange = self._backfill.strange(stage.captured)
        if not strange:
            return False
        with session(self._source.dsn) as connection:
            return not strange.isdisjoint(catalog.tables(connection))

    def _empty(
        self, sinks: list[NamedSink], table: Table, lsn: Lsn, chunk: int
    ) -> None:
        """Let a table's readers empty it; see that delivered."""
        op = snapshot_truncate(table, lsn, chunk, postgres_time(runtime.time()))
        transaction = alone(lsn)
        for sink in sinks:
            sink.send(op, transaction)
        self._await(lambda: all_ready(sinks) and not transaction.undelivered)
