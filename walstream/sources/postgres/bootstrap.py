"""From the start table to a position: what a source creates, adopts or goes on with.

First intent, then publication, then slot, and then the position together with what is
to be backfilled: a start that was cut short at any point is gone on with by the next.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from walstream.config.run_options import Options
from walstream.errors import ConfigError, Transient
from walstream.lsn import Lsn, show
from walstream.pipeline.ports import Position
from walstream.pipeline.state_document import Entries
from walstream.postgres import preflight
from walstream.postgres import slot as slots
from walstream.postgres.capture import Capture
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection, session
from walstream.postgres.publication_memory import PUBLICATIONS
from walstream.postgres.server import Server
from walstream.postgres.snapshot_holder import Holder, backfilling
from walstream.postgres.start_table import Decision, Step, decide
from walstream.sources.handlers import is_backfilled
from walstream.sources.postgres.backfill import prerequisites
from walstream.sources.postgres.backfill.publication_filter import published
from walstream.sources.postgres.backfill.run import SnapshotBackfill
from walstream.sources.postgres.backfill.site import Site
from walstream.sources.postgres.stored_state import INTENT, SlotIntent, stored_of
from walstream.state.store import LmdbStore
from walstream.telemetry.fields import HINT, LSN, SLOT, TABLE

_log = structlog.get_logger()


@dataclass(slots=True)
class Begun:
    """Start of the stream."""

    slot_start: Lsn  # the slot's confirmed LSN as it was found
    holder: Holder | None = None  # of a new slot's snapshot; the caller closes it


class Beginning:
    """Brings one source to a position."""

    def __init__(
        self,
        site: Site,
        positions: LmdbStore,
        options: Options,
        capture: Capture,
        backfill: SnapshotBackfill,
    ) -> None:
        self._site = site
        self._positions = positions
        self._options = options
        self._capture = capture
        self._backfill = backfill
        self._slot_start: Lsn = 0

    @property
    def _initial(self) -> bool:
        return self._site.source.backfill == "initial"

    def decide(self, connection: Connection, server: Server) -> Decision:
        """Compare the state with the slot; raise where it says stop, or wait."""
        source = self._site.source
        stored = stored_of(self._positions, source.slot)
        slot = slots.find(connection, source.slot)
        self._site.gauge.see(slots.health(connection, source.slot))
        self._slot_start = (slot.confirmed_flush_lsn or 0) if slot else 0
        decision = decide(
            self._site.name, stored, slot, server, adopt=self._options.adopt_slot
        )
        if decision.step is Step.WAIT and slot is not None and slot.active_pid:
            if self._options.take_over:
                _log.warning("taking the slot over", pid=slot.active_pid)
                slots.take_over(source.dsn, slot.active_pid)
            raise preflight.in_use(connection, slot, adopt=self._options.adopt_slot)
        if decision.step is Step.ADOPT and not stored.intended(server):
            self._check_backfilled(connection)
        return decision

    def _check_backfilled(self, connection: Connection) -> None:
        """Wait while another instance sends rows from before the slot's stream.

        They would come behind newer ones of this stream; and that instance would lose
        the slot for which it sends them.
        """
        source = self._site.source
        pid = backfilling(connection, source.slot)
        if not pid:
            return
        if self._options.take_over:
            _log.warning("ending a backfill of another instance", pid=pid)
            slots.take_over(source.dsn, pid)
        raise preflight.backfilled_by(connection, source.slot, pid)

    def begin_only(
        self, connection: Connection, captured: Mapping[str, TableFacts]
    ) -> bool:
        """Prepare a backfill without a stream; False: it was done before."""
        source = self._site.source
        if self._positions.position() is not None:
            raise ConfigError(
                f"source {self._site.name!r} streams, and backfill is 'only'",
                hint='write backfill = "initial"; or, to send its tables again: '
                "walstream backfill TABLE",
            )
        record = self._backfill.record
        if record is None:
            self.check(connection, captured, create=True)
            preflight.check(connection, self._capture, captured)
            self._capture.establish(connection)
            tables = self._backfilled(connection)
            self._positions.write(self._backfill.begin(0, tables))
        elif record.failed:  # once more: what was wrong may be mended
            self.check(connection, captured, create=False)
            self._capture.recognise(connection)
            self._backfill.want_again()
        elif not record.tables:
            _log.info(
                "backfilled before",
                rows=record.rows,
                hint=f"to repeat it: walstream positions reset {self._site.name}",
            )
            return False
        else:
            self.check(connection, captured, create=False)
            self._capture.recognise(connection)
        _log.info("backfill only: no slot is kept", publication=source.publication)
        return True

    def check(
        self,
        connection: Connection,
        captured: Mapping[str, TableFacts],
        *,
        create: bool,
    ) -> None:
        """Refuse what a backfill lacks, before anything is created for it."""
        config = self._site.config
        if create and self._site.source.backfill != "never":
            where = self._site.source.backfill_where
            for _, obstacle in prerequisites.of_first(
                config, connection, captured, where
            ):
                raise obstacle
        elif self._backfill.pending and (record := self._backfill.record):
            for _, obstacle in prerequisites.of_rest(config, connection, record.tables):
                raise obstacle

    def begin(
        self,
        decision: Decision,
        server: Server,
        facts: Mapping[str, TableFacts],
        wait: Callable[[], None],
    ) -> Begun:
        """Come to a position, and to publications to read.

        `wait` for what must be there before anything is created in PostgreSQL.
        """
        with session(self._site.source.dsn) as connection:
            stored = self._positions.position()
            if decision.step is Step.STREAM and stored is not None:
                remembered = PUBLICATIONS.read(self._positions)
                self._capture.resume(connection, remembered, facts)
                return Begun(self._slot_start)
            if decision.step is Step.CREATE:
                preflight.check(connection, self._capture, facts)
        if decision.step is Step.CREATE:
            wait()
            return self._create(server)
        return self._adopt(decision, server)

    def _create(self, server: Server) -> Begun:
        """First start: intent, publication, slot, position, in this order."""
        source = self._site.source
        self._positions.write(self._intent(server, None))
        with session(source.dsn) as connection:
            self._capture.establish(connection)
            tables = self._tables(connection)
        created = slots.create(
            source.dsn,
            slots.SlotSpec(source.slot, failover=source.failover),
            slots.WaitPolicy(self._site.stop.event, tell_of_waiting),
        )
        point = created.consistent_point
        _log.info("slot created", **{SLOT: source.slot, LSN: show(point)})
        self._slot_start = point
        holder = None
        try:
            if self._initial:
                holder = Holder.of_new_slot(source.dsn, created, source.slot)
            else:
                created.connection.close()
        except Transient as error:
            # the next snapshot is as good: of a temporary slot
            _log.warning("the slot's snapshot is lost", error=str(error))
        self._remember(server, point, tables)
        return Begun(point, holder)

    def _intent(self, server: Server, point: Lsn | None) -> Entries:
        slot = self._site.source.slot
        intent = SlotIntent(slot, point, server.system_identifier, server.database)
        return INTENT.entry(intent)

    def _adopt(self, decision: Decision, server: Server) -> Begun:
        """Use an existing slot: from an interrupted start, or adopted."""
        source = self._site.source
        ours = stored_of(self._positions, source.slot).intended(server)
        with session(source.dsn) as connection:
            if not ours:
                self._capture.check_adopted(connection)
            self._capture.recognise(connection, at_first=ours)
            tables = self._tables(connection) if ours else []
        adopted = {SLOT: source.slot, LSN: show(decision.resume)}
        if ours:
            _log.info("slot adopted", **adopted)
        else:
            hint = "if rows from before that LSN were not sent: walstream backfill"
            _log.warning("slot adopted", **adopted, **{HINT: hint})
        self._remember(server, decision.resume, tables)
        return Begun(self._slot_start)

    def _tables(self, connection: Connection) -> list[str]:
        """Name what is to be backfilled."""
        if not self._initial:
            return []
        return self._backfilled(connection)

    def _backfilled(self, connection: Connection) -> list[str]:
        """Name the tables whose rows go out, but for those of outboxes."""
        config, name = self._site.config, self._site.name
        tables = []
        for table in published(connection, self._capture.read):
            if is_backfilled(config, name, table):
                tables.append(table)
            else:
                _log.info(
                    "table is an outbox: its existing rows are not sent",
                    **{TABLE: table},
                )
        return tables

    def _remember(self, server: Server, point: Lsn, tables: list[str]) -> None:
        source = self._site.source
        position = Position(
            resume=point,
            system_identifier=server.system_identifier,
            timeline=server.timeline,
            database=server.database,
            slot=source.slot,
        )
        self._positions.store(
            position,
            {
                **self._intent(server, point),
                **self._capture.entry,
                **(self._backfill.begin(point - 1, tables) if tables else {}),
            },
        )


def tell_of_waiting(who: str) -> None:
    """Log which transactions hold up the creation of a slot."""
    _log.warning("creating the slot waits for running transactions", sessions=who)
