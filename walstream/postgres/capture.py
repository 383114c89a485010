"""Keeps the publication as the source's `tables` want it, and notices its loss.

Run at start and then again and again over short sessions: new tables that match are
added, tables that lost their replica identity are moved where they do no harm.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from walstream.errors import ConfigError, PermissionLacking
from walstream.lsn import show
from walstream.metrics import HINT, LSN, TABLE
from walstream.postgres import catalog, publication
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection, publication_lost, session
from walstream.routing import matches

_ALL_OPERATIONS: Final = "insert, update, delete, truncate"
_log = structlog.get_logger()


@dataclass(slots=True)
class Capture:
    """The publications of one source, and what is remembered of them."""

    dsn: str
    name: str
    patterns: list[str]  # empty: the publication is used as it is
    keep: Callable[[Mapping[str, Any]], None]  # stores what is remembered
    remembered: dict[str, Any] = field(default_factory=dict)  # those that are read
    _told: set[str] = field(default_factory=set)

    @property
    def _names(self) -> tuple[str, str]:
        return self.name, publication.insert_only(self.name)

    def establish(self, connection: Connection) -> None:
        """Create what is missing before the slot is, and remember it.

        Both publications must be older than the slot: a slot reads no publication that
        was created after what it decodes.
        """
        found = publication.find(connection, self._names)
        if not self.patterns:
            if self.name not in found:
                raise ConfigError(
                    f"publication {self.name!r} does not exist, and `tables` is empty",
                    hint=f'run: CREATE PUBLICATION "{self.name}" FOR TABLE ...; or say'
                    " in `tables` what to capture",
                )
            self.remembered = {self.name: found[self.name].identity}
            return
        plan = publication.plan(self.patterns, catalog.tables(connection))
        with connection.transaction():
            self._create(connection, plan, set(found))
        self.recognise(connection)

    def recognise(self, connection: Connection) -> None:
        """Remember the publications that are there, and extend them.

        Nothing is created: a slot that is there could not read it.
        """
        found = publication.find(connection, self._names)
        if self.name not in found:
            raise publication_lost(f"publication {self.name!r} does not exist")
        self.remembered = {name: made.identity for name, made in found.items()}
        self.extend(connection, catalog.tables(connection))

    def resume(
        self,
        connection: Connection,
        remembered: Mapping[str, Any],
        facts: Mapping[str, TableFacts],
    ) -> None:
        """Go on with what was remembered; raise PublicationLost where it is gone."""
        self.remembered = dict(remembered)
        self.check(connection)
        self.extend(connection, facts)

    def _create(
        self, connection: Connection, plan: publication.Plan, found: set[str]
    ) -> None:
        main, inserts = self._names
        if main not in found:
            publication.create(connection, main, plan.identified, _ALL_OPERATIONS)
        if inserts not in found:
            try:
                with connection.transaction():
                    publication.create(
                        connection, inserts, plan.insert_only, "insert, truncate"
                    )
            except PermissionLacking as error:
                self._tell(
                    inserts,
                    "no publication for tables without a replica identity",
                    hint=f"{error.hint} It must be older than the slot: then walstream"
                    " positions reset SOURCE",
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
            self._tell(name, "table cannot be captured", hint=reason)
        self._add(connection, main, plan.identified)
        if inserts is not None:
            homeless = [table for table in plan.insert_only if main.names(table)]
            with connection.transaction():
                if homeless:
                    publication.remove(connection, main.name, homeless)
                self._add(connection, inserts, plan.insert_only)
        for table in plan.insert_only:
            self._tell_of_no_identity(table, read=inserts is not None)
        self._remember(publication.find(connection, list(self.remembered)))

    def _remember(self, found: Mapping[str, publication.Publication]) -> None:
        now = {name: made.identity for name, made in found.items()}
        if now != self.remembered:
            self.remembered = now
            self.keep(now)

    def _add(
        self,
        connection: Connection,
        into: publication.Publication,
        tables: list[TableFacts],
    ) -> None:
        for table in tables:
            if into.holds(table):
                continue
            try:
                publication.add(connection, into.name, [table])
            except PermissionLacking as error:
                self._tell(table.full_name, error.args[0], hint=error.hint)
                continue
            _log.info(
                "table added to the publication",
                **{TABLE: table.full_name, LSN: show(catalog.flush_lsn(connection))},
            )

    def _tell_of_no_identity(self, table: TableFacts, *, read: bool) -> None:
        what = "only its inserts are captured" if read else "it is not captured"
        self._tell(
            table.full_name,
            f"table has no replica identity: {what}",
            hint=f'run: ALTER TABLE "{table.schema}"."{table.name}"'
            " REPLICA IDENTITY FULL; or give it a primary key",
        )

    def _tell(self, subject: str, what: str, *, hint: str) -> None:
        """Warn, once for each subject."""
        if subject not in self._told:
            self._told.add(subject)
            _log.warning(what, **{TABLE: subject, HINT: hint})

    def check(self, connection: Connection) -> None:
        """Raise PublicationLost when one is gone or no longer what it was.

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
        for table in publication.names_of(connection, before - held):
            if any(matches(pattern, table) for pattern in self.patterns):
                raise publication_lost(
                    f"table {table!r} was taken out of publication {self.name!r}"
                )
            self._tell(table, "table was taken out of the publication", hint="")
        self._remember(found)

    def look(
        self,
        extend: bool,  # noqa: FBT001 - called by a thread pool, by position
    ) -> None:
        """Check, and extend if asked, over a short session."""
        with session(self.dsn) as connection:
            self.check(connection)
            if extend:
                self.extend(connection, catalog.tables(connection))

    def captured(
        self, connection: Connection, facts: Mapping[str, TableFacts]
    ) -> dict[str, TableFacts]:
        """Name the tables that are captured now, or will be once begun."""
        found = publication.find(connection, self._names).values()
        plan = publication.plan(self.patterns, facts)
        wanted = {t.full_name for t in (*plan.identified, *plan.insert_only)}
        return {
            name: table
            for name, table in facts.items()
            if name in wanted or any(made.holds(table) for made in found)
        }
