"""Keeps the publication as the source's `tables` want it, and notices its loss.

Run at start and then again and again over short sessions: new tables that match are
added, tables that lost their replica identity are moved where they do no harm.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from walstream.errors import (
    NO_REPAIR,
    RESET,
    ConfigError,
    PermissionLacking,
    PublicationLost,
    Repair,
    WalstreamError,
)
from walstream.lsn import show
from walstream.metrics import HINT, LSN, REPAIR, TABLE
from walstream.postgres import catalog, identity, publication, quote, rights
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection, publication_lost
from walstream.postgres.publication import Publication
from walstream.postgres.rights import Rights
from walstream.routing import matches

_EVERY_TABLE: Final = ("*.*",)
_log = structlog.get_logger()


@dataclass(slots=True)
class Capture:
    """The publications of one source, and what is remembered of them."""

    dsn: str
    name: str
    patterns: list[str]  # empty: the publication is used as it is
    keep: Callable[[Mapping[str, Any]], None]  # stores what is remembered
    # hears of tables that came in since: their old rows were not streamed
    grown: Callable[[Sequence[str]], None] = lambda _tables: None
    remembered: dict[str, Any] = field(default_factory=dict)  # those that are read
    _told: set[str] = field(default_factory=set)

    @property
    def names(self) -> tuple[str, str]:
        """Both publications: the main one, and that of tables without identity."""
        return self.name, publication.insert_only(self.name)

    def obstacles(
        self,
        connection: Connection,
        may: Rights,
        facts: Mapping[str, TableFacts],
    ) -> Iterator[WalstreamError]:
        """Say what would keep `establish` from doing its work."""
        if self.name in publication.find(connection, self.names):
            return
        if not self.patterns:
            yield self._not_there(facts)
            return
        plan = publication.plan(self.patterns, facts)
        lacking = rights.missing_to_create(
            may, self._statements(connection, plan), plan.identified
        )
        if lacking is not None:
            yield lacking

    def _not_there(self, facts: Mapping[str, TableFacts]) -> ConfigError:
        every = publication.plan(_EVERY_TABLE, facts).identified
        statement = publication.creation(self.name, every, publication.ALL_OPERATIONS)
        return ConfigError(
            f"publication {self.name!r} does not exist, and `tables` is empty",
            hint="create it for the tables that you want; or say in `tables` what to"
            " capture",
            repair=Repair(sql=statement),
        )

    def _statements(self, connection: Connection, plan: publication.Plan) -> list[str]:
        """Write what creates those that are missing, the main one first."""
        found = publication.find(connection, self.names)
        main, inserts = self.names
        made = {
            main: publication.creation(
                main, plan.identified, publication.ALL_OPERATIONS
            ),
            inserts: publication.creation(
                inserts, plan.insert_only, publication.INSERT_OPERATIONS
            ),
        }
        return [statement for name, statement in made.items() if name not in found]

    def establish(self, connection: Connection) -> None:
        """Create what is missing before the slot is, and remember it.

        Both publications must be older than the slot: a slot reads no publication that
        was created after what it decodes.
        """
        found = publication.find(connection, self.names)
        facts = catalog.tables(connection)
        if not self.patterns:
            if self.name not in found:
                raise self._not_there(facts)
            self.remembered = {self.name: found[self.name].identity}
            return
        plan = publication.plan(self.patterns, facts)
        with connection.transaction():
            self._create(connection, plan, set(found))
        self.recognise(connection)

    def recognise(self, connection: Connection) -> None:
        """Remember the publications that are there, and extend them.

        Nothing is created: a slot that is there could not read it.
        """
        found = self.present(connection)
        self.remembered = {name: made.identity for name, made in found.items()}
        self.extend(connection, catalog.tables(connection))

    def present(self, connection: Connection) -> dict[str, Publication]:
        """Find the publications of a slot that is there; raise without the main one."""
        found = publication.find(connection, self.names)
        if self.name not in found:
            raise publication_lost(f"publication {self.name!r} does not exist")
        return found

    def resume(
        self,
        connection: Connection,
        remembered: Mapping[str, Any] | None,
        facts: Mapping[str, TableFacts],
    ) -> None:
        """Go on with what was remembered; raise PublicationLost where it is gone."""
        self.recall(remembered)
        self.check(connection)
        self.extend(connection, facts)

    def recall(self, remembered: Mapping[str, Any] | None) -> None:
        """Take up what was stored; without it nobody knows what was missed."""
        if remembered is None:
            raise PublicationLost(
                "the state folder does not say which publications are read",
                hint="whether one was lost meanwhile cannot be told",
                repair=RESET,
            )
        self.remembered = dict(remembered)

    def _create(
        self, connection: Connection, plan: publication.Plan, found: set[str]
    ) -> None:
        main, inserts = self.names
        if main not in found:
            publication.execute(
                connection,
                publication.creation(main, plan.identified, publication.ALL_OPERATIONS),
            )
        if inserts not in found:
            try:
                with connection.transaction():
                    publication.execute(
                        connection,
                        publication.creation(
                            inserts, plan.insert_only, publication.INSERT_OPERATIONS
                        ),
                    )
            except PermissionLacking as error:
                self._tell(
                    inserts,
                    "no publication for tables without a replica identity",
                    hint=f"{error.hint}. It must be older than the slot: then walstream"
                    " positions reset SOURCE",
                    repair=error.repair,
                )

    def extend(self, connection: Connection, facts: Mapping[str, TableFacts]) -> None:
        """Add tables that match and are not in; remember what changed."""
        found = publication.find(connection, list(self.remembered))
        main = found.get(self.name)
        if not self.patterns or main is None or main.all_tables:
            return
        inserts = found.get(publication.insert_only(self.name))
        plan = publication.plan(self.patterns, facts)
        for name, reason in plan.refused.items():
            repair = Repair(sql=set_logged(facts[name]))
            self._tell(name, "table cannot be captured", hint=reason, repair=repair)
        self._add(connection, main, plan.identified)
        if inserts is not None:
            with connection.transaction():
                homeless = [table for table in plan.insert_only if main.names(table)]
                self._remove(connection, main, homeless)
                self._add(connection, inserts, plan.insert_only)
        for table in plan.insert_only:
            culprits = identity.culprits(table, facts).values()
            self._tell_of_no_identity(table, culprits, read=inserts is not None)
        found = publication.find(connection, list(self.remembered))
        self._remember(connection, found)

    def _remember(
        self, connection: Connection, found: Mapping[str, publication.Publication]
    ) -> None:
        now = {name: made.identity for name, made in found.items()}
        if now != self.remembered:
            # first: a crash in between only makes it be told again
            if came := self._came(connection, found):
                self.grown(came)
            self.remembered = now
            self.keep(now)

    def _came(
        self, connection: Connection, found: Mapping[str, publication.Publication]
    ) -> list[str]:
        """Name tables that were in no publication, as their rows go out.

        One without a row key cannot be read beside the stream: that is said.
        """
        before = {oid for then in self.remembered.values() for oid in then["tables"]}
        inserts = publication.insert_only(self.name)
        came: list[str] = []
        for name, made in found.items():
            fresh = made.tables.keys() - before
            if not fresh:
                continue
            tables = publication.names_of(connection, fresh, leaves=not made.via_root)
            if name != inserts:
                came += tables
                continue
            for table in tables:
                self._tell(
                    f"{table}'s rows",
                    "rows that were in a table without a row key are not sent",
                    hint="stop walstream, then: walstream backfill",
                )
        return came

    def _remove(
        self, connection: Connection, main: Publication, homeless: list[TableFacts]
    ) -> None:
        """Take out tables whose rows cannot be updated any more while they are in."""
        if homeless:
            self._try(connection, homeless[0], publication.removal(main.name, homeless))

    def _add(
        self, connection: Connection, into: Publication, tables: Iterable[TableFacts]
    ) -> None:
        for table in tables:
            if not into.holds(table) and self._try(
                connection, table, publication.addition(into.name, [table])
            ):
                _log.info(
                    "table added to the publication",
                    **{
                        TABLE: table.full_name,
                        LSN: show(catalog.flush_lsn(connection)),
                    },
                )

    def _try(self, connection: Connection, table: TableFacts, statement: str) -> bool:
        """Run it; without the right to, say so and go on, in a transaction too."""
        try:
            with connection.transaction():
                publication.execute(connection, statement)
        except PermissionLacking as error:
            said = str(error.args[0])
            self._tell(table.full_name, said, hint=error.hint, repair=error.repair)
            return False
        return True

    def _tell_of_no_identity(
        self, table: TableFacts, culprits: Iterable[TableFacts], *, read: bool
    ) -> None:
        what = "only its inserts are captured" if read else "it is not captured"
        self._tell(
            table.full_name,
            f"table has no replica identity: {what}",
            hint="give it one, or a primary key",
            repair=Repair(sql="\n".join(identity.cure(one) for one in culprits)),
        )

    def _tell(
        self, subject: str, what: str, *, hint: str, repair: Repair = NO_REPAIR
    ) -> None:
        """Warn, once for each subject."""
        if subject not in self._told:
            self._told.add(subject)
            said = {TABLE: subject, HINT: hint}
            if repair:
                said[REPAIR] = repair.sql
            _log.warning(what, **said)

    def check(self, connection: Connection) -> None:
        """Raise PublicationLost when one is gone or no longer what it was."""
        found, taken_out = self.examine(connection)
        for table in taken_out:
            self._tell(table, "table was taken out of the publication", hint="")
        self._remember(connection, found)

    def examine(
        self, connection: Connection
    ) -> tuple[dict[str, Publication], list[str]]:
        """Give the publications, and the tables that were taken out on purpose.

        A table that was taken out is lost while `tables` wants it; else it was meant.
        """
        found = publication.find(connection, list(self.remembered))
        for name, then in self.remembered.items():
            now = found.get(name)
            if now is None:
                raise publication_lost(f"publication {name!r} was dropped")
            if problem := now.lost_since(then):
                raise publication_lost(problem)
        held = {oid for made in found.values() for oid in made.tables}
        before = {oid for then in self.remembered.values() for oid in then["tables"]}
        taken_out = publication.names_of(connection, before - held)
        for table in taken_out:
            if any(matches(pattern, table) for pattern in self.patterns):
                raise publication_lost(
                    f"table {table!r} was taken out of publication {self.name!r}"
                )
        return found, taken_out

    def captured(
        self, connection: Connection, facts: Mapping[str, TableFacts]
    ) -> dict[str, TableFacts]:
        """Name the tables that are captured now, or will be once begun."""
        found = publication.find(connection, self.names).values()
        plan = publication.plan(self.patterns, facts)
        wanted = {t.full_name for t in (*plan.identified, *plan.insert_only)}
        return {
            name: table
            for name, table in facts.items()
            if name in wanted or any(made.holds(table) for made in found)
        }


def set_logged(table: TableFacts) -> str:
    """Write what brings an unlogged table into the WAL."""
    return f"ALTER TABLE {quote.name(table.schema, table.name)} SET LOGGED;"
