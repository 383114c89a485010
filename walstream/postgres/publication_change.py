"""Changes of our own to the publications: one transaction, known again by its number.

The first statement locks the publication against other changes until the end. So what
is seen then, less what we did, is to be compared with what is remembered; what we did
is stored before it is committed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import psycopg
import structlog

from walstream.errors import RETRIED, PermissionLacking
from walstream.lsn import show
from walstream.postgres import catalog, publication
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection
from walstream.postgres.continuity import compare, with_own
from walstream.postgres.publication import Publication
from walstream.postgres.publication_catalog import see
from walstream.postgres.publication_memory import Memory
from walstream.postgres.publication_watch import PublicationWatch
from walstream.postgres.warning_once import WarningOnce
from walstream.telemetry.fields import LSN, TABLE

# locks of many tables are held at a time: one that waits for another gives up before
# deadlock_timeout, which would end the application's transaction
_LOCK_TIMEOUT: Final = "500ms"
_MOST_TABLES: Final = 500  # of a transaction, since each takes a lock
_LOCKED: Final = "55P03"
# somebody did it already, or dropped the table
_SETTLED: Final = frozenset({"42704", "42710", "42P01", "3F000"})
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PublicationChange:
    """Changes of the publications; a table moves from one to the other at once."""

    into: Publication
    tables: Sequence[TableFacts]
    out_of: Publication | None = None
    leaving: Sequence[TableFacts] = ()

    def parts(self) -> "Iterator[PublicationChange]":
        """Cut it, so that no transaction takes too many locks."""
        moving = {table.full_name for table in self.leaving}
        if moving:
            there = [table for table in self.tables if table.full_name in moving]
            yield PublicationChange(self.into, there, self.out_of, self.leaving)
        rest = [table for table in self.tables if table.full_name not in moving]
        for first in range(0, len(rest), _MOST_TABLES):
            yield PublicationChange(self.into, rest[first : first + _MOST_TABLES])


@dataclass(slots=True)
class Alteration:
    """One transaction."""

    connection: Connection
    watch: PublicationWatch
    teller: WarningOnce
    _done: dict[str, set[int]] = field(default_factory=dict)  # by publication

    def run(self, change: PublicationChange) -> None:
        """Make the change, and remember it; nothing is done where another came first.

        That one is for the next look to judge.
        """
        done = self._transact(change)
        if done is None:
            return
        after, added = done
        self.watch.remember(self.connection, after, own=True)
        for table in added:
            lsn = show(catalog.end_lsn(self.connection))
            said = {TABLE: table.full_name, LSN: lsn}
            _log.info("table added to the publication", **said)

    def _transact(
        self, change: PublicationChange
    ) -> tuple[Memory, list[TableFacts]] | None:
        done = []
        with self.connection.transaction() as transaction:
            self.connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
            if change.out_of is not None:
                self._remove(change.out_of, change.leaving)
            added = [one for one in change.tables if self._add(change.into, one)]
            after = self._after(change, added)
            if after is None:
                raise psycopg.Rollback(transaction)
            done.append((after, added))
        return done[0] if done else None

    def _after(
        self, change: PublicationChange, added: Iterable[TableFacts]
    ) -> Memory | None:
        """Note what it comes to; None: nothing was done, or a stranger was there."""
        found = publication.find(self.connection, self.watch.names)
        oids = {name: oid for oid, name in found[change.into.name].tables.items()}
        for table in added:
            self._note(change.into, oids[table.full_name])
        if not self._done:
            return None
        now = see(self.connection, found)
        before = self.watch.memory
        ours = {str(oid) for oids in self._done.values() for oid in oids}
        expected = with_own(before.sightings, now, self._done)
        seen = compare(expected, now, before.left - ours)
        if not seen.harmless or seen.doubtful:
            return None  # the next look tells what it was
        after = Memory(now, seen.left - ours)
        row = self.connection.execute("SELECT pg_current_xact_id()::text").fetchone()
        self.watch.note(row[0] if row else "", after)
        return after

    def _note(self, where: Publication, oid: int) -> None:
        self._done.setdefault(where.name, set()).add(oid)

    def _remove(self, main: Publication, homeless: Sequence[TableFacts]) -> None:
        """Remove tables whose rows can no longer be updated while published."""
        oids = {name: oid for oid, name in main.tables.items()}
        for table in homeless:
            if self._try(table, publication.removal(main.name, [table])):
                self._note(main, oids[table.full_name])

    def _add(self, into: Publication, table: TableFacts) -> bool:
        return self._try(table, publication.addition(into.name, [table]))

    def _try(self, table: TableFacts, statement: str) -> bool:
        """Run it; where it cannot be, say so and go on, in a transaction too."""
        try:
            with self.connection.transaction():
                publication.execute(self.connection, statement)
        except PermissionLacking as error:
            said = str(error.args[0])
            self.teller.warn(
                table.full_name, said, hint=error.hint, repair=error.repair
            )
            return False
        except psycopg.Error as error:
            if error.sqlstate == _LOCKED:
                self.teller.warn(
                    table.full_name,
                    "table is locked: the publication is changed later",
                    hint=f"{RETRIED} within a minute",
                )
            elif error.sqlstate not in _SETTLED:
                raise
            return False
        return True
