"""Keeps the publication as the source's `tables` want it, and notices its loss.

Run at start and then again and again over short sessions: new tables that match are
added, tables that lost their replica identity are moved where they do no harm.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from walstream.errors import ConfigError, PermissionLacking
from walstream.lsn import show
from walstream.metrics import HINT, LSN, TABLE
from walstream.postgres import catalog, publication
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection, publication_lost, session

_ALL_OPERATIONS: Final = "insert, update, delete, truncate"
_log = structlog.get_logger()


@dataclass(slots=True)
class Capture:
    """The publications of one source."""

    dsn: str
    name: str
    patterns: list[str]  # empty: the publication is used as it is
    _told: set[str] = field(default_factory=set)

    @property
    def _names(self) -> tuple[str, str]:
        return self.name, publication.insert_only(self.name)

    def establish(self, connection: Connection) -> dict[str, Any]:
        """Create what is missing before the slot is; give what to remember.

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
            return {self.name: found[self.name].identity}
        facts = catalog.tables(connection)
        plan = publication.plan(self.patterns, facts)
        with connection.transaction():
            self._create(connection, plan, set(found))
        self.extend(connection, facts)
        found = publication.find(connection, self._names)
        return {name: made.identity for name, made in found.items()}

    def recognise(self, connection: Connection) -> dict[str, Any]:
        """Find the publications of a slot that is there; give what to remember.

        Nothing is created: the slot could not read it. Tables may still be added.
        """
        found = publication.find(connection, self._names)
        if self.name not in found:
            raise publication_lost(f"publication {self.name!r} does not exist")
        self.extend(connection, catalog.tables(connection))
        return {name: made.identity for name, made in found.items()}

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
                    hint=error.hint,
                )

    def extend(
        self, connection: Connection, facts: Mapping[str, TableFacts]
    ) -> list[TableFacts]:
        """Add tables that match and are not in; give those that were added."""
        if not self.patterns:
            return []
        found = publication.find(connection, self._names)
        main, inserts = (found.get(name) for name in self._names)
        if main is None or main.all_tables:
            return []
        plan = publication.plan(self.patterns, facts)
        for name, reason in plan.refused.items():
            self._tell(name, "table cannot be captured", hint=reason)
        added = self._add(connection, main, plan.identified)
        homeless = [t for t in plan.insert_only if t.full_name in main.tables]
        if homeless and inserts is not None:
            with connection.transaction():
                publication.remove(connection, main.name, homeless)
                added += self._add(connection, inserts, plan.insert_only)
        elif inserts is not None:
            added += self._add(connection, inserts, plan.insert_only)
        for table in plan.insert_only:
            self._tell(
                table.full_name,
                "table has no replica identity: only its inserts are captured",
                hint=f'run: ALTER TABLE "{table.schema}"."{table.name}"'
                " REPLICA IDENTITY FULL; or give it a primary key",
            )
        return added

    def _add(
        self,
        connection: Connection,
        into: publication.Publication,
        tables: list[TableFacts],
    ) -> list[TableFacts]:
        missing = [table for table in tables if table.full_name not in into.tables]
        added = []
        for table in missing:
            try:
                publication.add(connection, into.name, [table])
            except PermissionLacking as error:
                self._tell(table.full_name, str(error), hint=error.hint)
                continue
            added.append(table)
            _log.info(
                "table added to the publication",
                **{TABLE: table.full_name, LSN: show(catalog.flush_lsn(connection))},
            )
        return added

    def _tell(self, subject: str, what: str, *, hint: str) -> None:
        """Warn, once for each subject."""
        if subject not in self._told:
            self._told.add(subject)
            _log.warning(what, **{TABLE: subject, HINT: hint})

    def check(self, connection: Connection, remembered: Mapping[str, Any]) -> None:
        """Raise PublicationLost when one is gone or no longer what it was."""
        found = publication.find(connection, list(remembered))
        for name, then in remembered.items():
            now = found.get(name)
            problem = (
                now.lost_since(then) if now else f"publication {name!r} was dropped"
            )
            if problem:
                raise publication_lost(problem)

    def look(
        self,
        remembered: Mapping[str, Any],
        extend: bool,  # noqa: FBT001 - called by a thread pool, by position
    ) -> dict[str, TableFacts]:
        """Check, and extend if asked, over a short session; give all tables."""
        with session(self.dsn) as connection:
            self.check(connection, remembered)
            facts = catalog.tables(connection)
            if extend:
                self.extend(connection, facts)
            return facts

    def captured(self, connection: Connection) -> list[str]:
        """List what the publications hold now, by `schema.table`."""
        found = publication.find(connection, self._names)
        return sorted({name for made in found.values() for name in made.tables})
