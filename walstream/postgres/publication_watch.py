"""The watch over the publications: what was examined last, and what became of it.

What is remembered is only ever replaced by what was compared with it, so that a change
is noticed at some look before it can be forgotten, whoever was away meanwhile.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import psycopg
import structlog

from walstream.errors import RESET, RETRIED, PublicationLost, Repair, Transient
from walstream.pipeline.state_document import Entries
from walstream.postgres import catalog, publication
from walstream.postgres.connection import Connection, publication_lost
from walstream.postgres.continuity import compare
from walstream.postgres.missing_rows import Mending
from walstream.postgres.publication import Publication
from walstream.postgres.publication_catalog import see
from walstream.postgres.publication_facts import Sighting
from walstream.postgres.publication_memory import (
    PUBLICATIONS,
    Altered,
    Memory,
    StoredPublication,
)
from walstream.postgres.selection import Selection
from walstream.postgres.warning_once import WarningOnce
from walstream.telemetry.fields import TABLE
from walstream.telemetry.human import few

DOUBTFUL: Final = "was either rewritten or UNLOGGED for a while"
DOUBT: Final = "if it was UNLOGGED, rows are missing: read it again"
OTHER_LIST: Final = "has another column list in the publication than in `columns`"
_TAKEN_OUT: Final = "was removed from the publication"
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PublicationLook:
    """Findings of one look at the publications."""

    memory: Memory  # as it is to be remembered
    taken_out: list[str] = field(default_factory=list)  # on purpose; `schema.table`
    missed: dict[str, str] = field(default_factory=dict)  # by table, and why
    doubtful: list[str] = field(default_factory=list)  # was it UNLOGGED, or rewritten?


@dataclass(slots=True)
class PublicationWatch:
    """Memory of the publications that are read."""

    name: str  # of the main one
    wanted: Selection
    keep: Callable[[Entries], None]  # stores what is remembered
    # hears of tables that came in since: their old rows were not streamed
    grown: Callable[[Sequence[str]], None]
    mending: Mending
    teller: WarningOnce
    memory: Memory = field(default_factory=Memory)
    at_first: bool = False  # nothing was streamed yet: no table is new since

    @property
    def names(self) -> list[str]:
        return list(self.memory.sightings)

    def begin(self, connection: Connection, found: Mapping[str, Publication]) -> None:
        """Remember the existing state: nothing was read before."""
        self.memory = Memory(see(connection, found))

    def recall(self, stored: Mapping[str, StoredPublication] | None) -> None:
        """Take up what was stored; without it nobody knows what was missed."""
        if stored is None:
            raise PublicationLost(
                "the state folder does not say which publications are read",
                hint="a publication may have been lost meanwhile without a trace",
                repair=RESET,
            )
        self.memory = Memory.of(stored)

    @property
    def entry(self) -> Entries:
        """What stores the memory."""
        return PUBLICATIONS.entry(self.memory.stored(self.name))

    def check(self, connection: Connection, *, starting: bool = False) -> None:
        """Raise PublicationLost if rows may be missing and are not read again.

        `starting`: requested tables are read again after this look.
        """
        look = self.examine(connection)
        for table in look.taken_out:
            self.teller.warn(table, f"table {_TAKEN_OUT}")
        for table in look.doubtful:
            self.teller.forget(table)  # each time may be the one
            self.teller.warn(
                table,
                f"table {DOUBTFUL}",
                hint=DOUBT,
                repair=Repair(command=self.mending.command([table])),
            )
        asked = self.mending.asked() if starting else ()
        missed = {name: why for name, why in look.missed.items() if name not in asked}
        self.mend(connection, missed)
        self.remember(connection, look.memory)

    def examine(self, connection: Connection) -> PublicationLook:
        """Compare with what is remembered; raise for what nothing can be read of."""
        self._settle(connection)
        now = see(connection, publication.find(connection, self.names))
        found = compare(self.memory.sightings, now, self.memory.left)
        if found.lost:
            raise publication_lost(found.lost)
        look = PublicationLook(Memory(now, _still_there(connection, found.left)))
        for table in publication.names_of(connection, found.gone):
            # `tables` would have it in again: then it was not meant
            if self.wanted.wants(table):
                look.missed[table] = f"was removed from publication {self.name!r}"
            else:
                look.taken_out.append(table)
        for why in sorted(set(found.missed.values())):
            oids = [oid for oid, reason in found.missed.items() if reason == why]
            named = self._named(connection, now, oids)
            look.missed.update(dict.fromkeys(named, why))
        look.doubtful.extend(self._named(connection, now, found.doubtful))
        return look

    def _named(
        self,
        connection: Connection,
        sightings: Mapping[str, Sighting],
        oids: Iterable[int],
    ) -> list[str]:
        """Name tables as their rows go out."""
        named: dict[str, None] = {}
        oids = set(oids)
        for seen in sightings.values():
            mine = oids & (seen.ways.keys() | seen.unlogged)
            if mine:
                names = publication.names_of(connection, mine, leaves=not seen.via_root)
                named.update(dict.fromkeys(names))
        return list(named)

    def relisted(self, names: Collection[str]) -> dict[str, str]:
        """Return which of these have to be read again for their other columns."""
        if self.at_first or not names:
            return {}
        return dict.fromkeys(sorted({*names} - {*self.mending.asked()}), OTHER_LIST)

    def check_rule(self, connection: Connection, missed: Mapping[str, str]) -> None:
        """Raise if the rule is to stop before these tables are read again."""
        if not missed:
            return
        if refusal := self.mending.refusal(missed, catalog.tables(connection)):
            raise refusal

    def mend(self, connection: Connection, missed: Mapping[str, str]) -> None:
        """Request that tables are read again; raise if the rule says stop."""
        self.check_rule(connection, missed)
        if missed and self.mending.ask is not None:
            for why in sorted(set(missed.values())):
                names = [name for name in missed if missed[name] == why]
                _log.warning(
                    "rows may be missing from the stream: walstream reads them again "
                    "while it streams",
                    **{TABLE: few(names)},
                    tables=len(names),
                    reason=why,
                )
            self.again(missed)  # first: a crash only has it told again

    def again(self, names: Iterable[str]) -> None:
        """Request that tables are read again, if anybody hears that."""
        if self.mending.ask is not None:
            self.mending.ask(sorted(names))

    def note(self, xid: str, after: Memory) -> None:
        """Store what a transaction of our own makes of the publications.

        Before it is committed: whoever starts after a crash knows it by its number.
        """
        self.memory = replace(self.memory, altered=Altered(xid, after))
        self.keep(self.entry)

    def _settle(self, connection: Connection) -> None:
        """See what became of a change of our own that was cut short."""
        altered = self.memory.altered
        if altered is None:
            return
        committed = _committed(connection, altered.xid)
        if committed is None:
            # so long ago that the server forgot: it is seen by what is there
            now = see(connection, publication.find(connection, self.names))
            after = altered.after
            committed = compare(after.sightings, now, after.left).harmless
        before = Memory(self.memory.sightings, self.memory.left)
        self.remember(connection, altered.after if committed else before, own=True)

    def remember(
        self, connection: Connection, memory: Memory, *, own: bool = False
    ) -> None:
        """Store the examined state; request reading of new tables.

        `own`: the change was ours. Then returned tables are read again too: they were
        out while `tables` excluded them.
        """
        if memory == self.memory:
            return
        if not self.at_first:
            # first: a crash in between only makes it be told again
            self._have_read(connection, memory.sightings, own=own)
        self.keep(PUBLICATIONS.entry(memory.stored(self.name)))
        self.memory = memory  # not before: else nothing would store it any more

    def _have_read(
        self, connection: Connection, now: Mapping[str, Sighting], *, own: bool
    ) -> None:
        before = self.memory
        found = compare(before.sightings, now, before.left)
        if came := self._came(connection, now, found.came):
            self.grown(came)
        if own and (back := {oid for oid in found.missed if str(oid) in before.left}):
            self._again(connection, self._named(connection, now, back), wanted=True)
        if found.widened:
            self._again(connection, self._named(connection, now, found.widened))

    def _came(
        self,
        connection: Connection,
        now: Mapping[str, Sighting],
        fresh: Collection[int],
    ) -> list[str]:
        """Name tables that were in no publication, as their rows go out.

        One without a row key cannot be read beside the stream: that is said.
        """
        inserts = publication.insert_only(self.name)
        came: list[str] = []
        for name, seen in now.items():
            mine = seen.ways.keys() & set(fresh)
            if not mine:
                continue
            tables = publication.names_of(connection, mine, leaves=not seen.via_root)
            if name != inserts:
                came += tables
                continue
            for table in tables:
                self.teller.warn(
                    f"{table}'s rows",
                    "existing rows of a table without a row key are not sent",
                    hint="stop walstream, then: walstream backfill",
                )
        return came

    def regained(self, connection: Connection, oid: int) -> bool:
        """Request that a table is read again whose rows were sent without a key.

        False: its key is away again.
        """
        seen = self.memory.sightings.values()
        names = self._named(connection, self.memory.sightings, [oid])
        leaves = [one.leaves.values() for one in seen if not one.via_root]
        if any(oid in marks for of in leaves for marks in of):
            names.extend(publication.names_of(connection, [oid]))
        if self.mending.keyless(names, catalog.tables(connection)):
            return False
        for name in names:
            self.teller.forget(name)
        what = "the table has a key now, but rows sent before have none"
        self._again(connection, names, what=what)
        return True

    def _again(
        self,
        connection: Connection,
        names: Sequence[str],
        *,
        wanted: bool = False,
        what: str = "all later changes of the table are sent; Kafka lacks those before",
    ) -> None:
        """Request that tables are read again whose changes were not published.

        Where the rule is to stop, these need none: that they were not was said then.
        """
        mending = self.mending
        if mending.ask is None or not names:
            return
        keyless = mending.keyless(names, catalog.tables(connection))
        if (mending.reread or wanted) and (keyed := set(names) - keyless):
            mending.ask(sorted(keyed))
            names = sorted(keyless)
        for table in names:
            self.teller.warn(
                table,
                what,
                hint="read it again",
                repair=Repair(command=mending.command([table])),
            )


def _still_there(connection: Connection, left: frozenset[str]) -> frozenset[str]:
    """Forget tables that were dropped."""
    if not left:
        return left
    wanted = {int(oid) for key in left for oid in key.split("/")}
    rows = connection.execute(
        "SELECT oid::bigint FROM pg_class WHERE oid = ANY (%s::oid[])", (list(wanted),)
    ).fetchall()
    there = {oid for (oid,) in rows}
    return frozenset(
        key for key in left if all(int(oid) in there for oid in key.split("/"))
    )


def _committed(connection: Connection, xid: str) -> bool | None:
    """Return whether a transaction was committed; None: it is too long ago."""
    try:
        row = connection.execute(
            "SELECT pg_xact_status(%s::text::xid8)", (xid,)
        ).fetchone()
    except psycopg.errors.InvalidParameterValue:
        return False  # this server, promoted meanwhile, has not come so far
    status = row[0] if row else None
    if status == "in progress":
        raise Transient(
            "a change of the publication by walstream is still being committed",
            hint=RETRIED,
        )
    return None if status is None else bool(status == "committed")
