"""Changes of our own to the publications: one transaction, known again by its number.

The first statement locks the publication against other changes until the end. So what
is seen then, less what we did, is to be compared with what is remembered; what we did
is stored before it is committed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import psycopg
import structlog

from walstream.errors import (
    RETRIED,
    ConfigError,
    PermissionLacking,
    Repair,
    Transient,
)
from walstream.lsn import show
from walstream.postgres import catalog, publication
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection
from walstream.postgres.continuity import compare, with_own
from walstream.postgres.publication import Publication
from walstream.postgres.publication_catalog import see
from walstream.postgres.publication_facts import Sightings
from walstream.postgres.publication_memory import Memory
from walstream.postgres.publication_watch import PublicationWatch
from walstream.postgres.selection import Selection
from walstream.postgres.warning_once import WarningOnce
from walstream.telemetry.fields import LSN, TABLE
from walstream.telemetry.human import few

# locks of many tables are held at a time: one that waits for another gives up before
# deadlock_timeout, which would end the application's transaction
_LOCK_TIMEOUT: Final = "500ms"
_MOST_TABLES: Final = 500  # of a transaction, since each takes a lock
_LOCKED: Final = "55P03"
# an event trigger's or an extension's, by class: other tables may do
_REFUSALS: Final = frozenset({"P0", "38", "39", "22", "0A", "55", "XX"})
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

    @property
    def relists(self) -> bool:
        """Return whether tables stay where they are, with other columns."""
        return bool(self.tables) and self.into is self.out_of

    @property
    def relisted(self) -> list[str]:
        """Name the tables that get other columns."""
        return [table.full_name for table in self.tables] if self.relists else []

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
    wanted: Selection
    _done: dict[str, set[int]] = field(default_factory=dict)  # by publication

    def run(self, change: PublicationChange) -> None:
        """Make the change, and remember it; nothing is done where another came first.

        That one is for the next look to judge. Raise PermissionLacking where what is to
        be hidden would still be sent.
        """
        missed = self.watch.relisted(change.relisted)
        try:
            done = self._transact(change, missed)
        except PermissionLacking as error:
            raise self._denied(change, error) from error
        if done is None:
            return
        after, added = done
        self.watch.remember(self.connection, after, own=True)
        if missed:  # what was begun meanwhile may have the columns of before
            self.watch.again(missed)
        lsn = show(catalog.end_lsn(self.connection))
        what = "table added to the publication"
        if change.relists:
            what = "column list of a table in the publication was changed"
        for table in added:
            _log.info(what, **{TABLE: table.full_name, LSN: lsn})
        if not change.tables:
            for table in change.leaving:
                said = {TABLE: table.full_name, LSN: lsn}
                _log.info("table removed from the publication", **said)

    def _transact(
        self, change: PublicationChange, missed: Mapping[str, str]
    ) -> tuple[Memory, list[TableFacts]] | None:
        done = []
        with self.connection.transaction() as transaction:
            self.connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_TIMEOUT}'")
            left = self._remove(change)
            added = [one for one in change.tables if self._add(change, one)]
            # a table gets another list only where it was, and never loses its place
            if change.relists:
                whole = left == len(added) == len(change.tables)
            else:
                whole = not _stranded(change, added)
            after = self._after(change, added) if whole else None
            if after is None:
                raise psycopg.Rollback(transaction)
            # last: whatever undoes the change leaves the table as it was read
            self.watch.mend(self.connection, missed)
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
        changed = {oid for oids in self._done.values() for oid in oids}
        generated = {one.oid for one in change.tables if 0 in one.numbers}
        if not changed or _disagree(found.values(), changed, generated):
            return None
        now = see(self.connection, found)
        before = self.watch.memory
        ours = set(map(str, changed))
        expected = with_own(before.sightings, now, self._done)
        seen = compare(expected, now, _without(before.left, ours, now))
        if not seen.harmless or seen.doubtful:
            return None  # the next look tells what it was
        published = {str(oid) for one in now.values() for oid in one.ways}
        after = Memory(now, (seen.left - ours) | (ours - published))
        row = self.connection.execute("SELECT pg_current_xact_id()::text").fetchone()
        self.watch.note(row[0] if row else "", after)
        return after

    def _note(self, where: Publication, oid: int) -> None:
        self._done.setdefault(where.name, set()).add(oid)

    def _remove(self, change: PublicationChange) -> int:
        """Remove tables; return how many were."""
        made = change.out_of
        if made is None:
            return 0
        oids = {name: oid for oid, name in made.tables.items()}
        count = 0
        for table in change.leaving:
            if self._try(change, table, publication.removal(made.name, [table])):
                self._note(made, oids[table.full_name])
                count += 1
        return count

    def _add(self, change: PublicationChange, into: TableFacts) -> bool:
        statement = publication.addition(change.into.name, [into], self.wanted)
        return self._try(change, into, statement)

    def _try(
        self, change: PublicationChange, table: TableFacts, statement: str
    ) -> bool:
        """Run it; where it cannot be, say so and go on, in a transaction too."""
        try:
            with self.connection.transaction():
                publication.execute(self.connection, statement)
        except (PermissionLacking, ConfigError) as error:
            if self._hides(change) and isinstance(error, PermissionLacking):
                raise
            said = str(error.args[0])
            self.teller.warn(
                table.full_name, said, hint=error.hint, repair=error.repair
            )
            return False
        except psycopg.Error as error:
            if error.sqlstate == _LOCKED and change.relists and self._is_awaited(table):
                raise Transient(
                    f"table {table.full_name!r} is locked, and its column list has to "
                    "be changed before it is read",
                    hint=RETRIED,
                ) from error
            if error.sqlstate == _LOCKED:
                self.teller.warn(
                    table.full_name,
                    "table is locked: the publication is changed later",
                    hint=f"{RETRIED} within a minute",
                )
            elif error.sqlstate not in _SETTLED:
                if self._hides(change) or (error.sqlstate or "")[:2] not in _REFUSALS:
                    raise
                self.teller.warn(
                    table.full_name,
                    "the publication cannot be changed for the table: "
                    f"{error.diag.message_primary}",
                    hint=f"{RETRIED} within a minute",
                    repair=Repair(sql=statement),
                )
            return False
        return True

    def _hides(self, change: PublicationChange) -> bool:
        """Return whether it keeps something from readers: not without it, then.

        A table that left for another reason, as its lost key, may stay.
        """
        names = (table.full_name for table in change.leaving)
        left_out = any(map(self.wanted.excludes, names))
        return change.relists or (left_out and not change.tables)

    def _is_awaited(self, table: TableFacts) -> bool:
        """Return whether all its rows are about to be read."""
        return self.watch.at_first or table.full_name in self.watch.mending.asked()

    def _denied(
        self, change: PublicationChange, error: PermissionLacking
    ) -> PermissionLacking:
        """Return the error with all statements of the change, for one transaction."""
        gone, there = change.leaving, change.tables
        made = change.out_of or change.into
        sql = [publication.removal(made.name, gone)] if gone else []
        sql += [publication.addition(change.into.name, there, self.wanted)] * bool(
            there
        )
        if len(sql) > 1:
            sql = ["BEGIN;", *sql, "COMMIT;"]
        names = few([table.full_name for table in gone])
        what = "`columns` leaves out" if change.relists else "`exclude` matches"
        return PermissionLacking(
            f"{error.args[0]}: what {what} of {names} would still be sent",
            hint=error.hint,
            repair=Repair(sql="\n".join(sql)),
        )


def _stranded(change: PublicationChange, added: Iterable[TableFacts]) -> set[str]:
    """Name tables that were to move, and that would be in no publication."""
    moves = {one.full_name for one in change.leaving}
    moves &= {one.full_name for one in change.tables}
    return moves - {one.full_name for one in added}


def _without(
    left: frozenset[str], ours: Collection[str], now: Sightings
) -> frozenset[str]:
    """Leave out tables of our own, and the partitions that are below them now.

    One that is detached still was not read with its root.
    """
    tied = {
        f"{root}/{leaf}"
        for one in now.values()
        for root, marks in one.leaves.items()
        for leaf in marks
    }
    return frozenset(
        key
        for key in left
        if key.partition("/")[0] not in ours or ("/" in key and key not in tied)
    )


def _disagree(
    found: Iterable[Publication], changed: Collection[int], generated: Collection[int]
) -> bool:
    """Return whether two publications have other columns of one table.

    PostgreSQL could then not decode a change of it, now or ever. `generated` are the
    tables with generated columns.
    """
    seen: dict[int, set[tuple[frozenset[str], str | None]]] = {}
    for made in found:
        for oid in made.tables.keys() & set(changed):
            columns = made.lists.get(oid, frozenset())
            whole = not columns and oid in generated
            seen.setdefault(oid, set()).add((columns, made.generated if whole else ""))
    return any(len(different) > 1 for different in seen.values())
