"""The catalog of publications and partitions, as of one moment: never changed.

A change makes another one, with new row versions; the WAL remembers which one each
transaction was written under, as a historic snapshot does.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import psycopg

EVERYTHING: Final = frozenset(("insert", "update", "delete", "truncate"))
_FIRST_OID: Final = 20_000


@dataclass(frozen=True)
class SimPublication:
    """A row of pg_publication, and its rows of pg_publication_rel."""

    name: str
    oid: int
    operations: frozenset[str]
    xmin: int
    line: int  # of its page
    via_root: bool = True
    # by the table's oid: the row's oid and xmin
    members: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class SimCatalog:
    """Publications by name, and which partition belongs to which root."""

    publications: Mapping[str, SimPublication] = field(default_factory=dict)
    # by the leaf's oid: its root's, and the xmin of the row of pg_inherits
    ties: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    version: int = 0  # of all: pgoutput describes tables again after each change
    rows: int = 0  # row versions of pg_publication that were ever made
    oids: int = _FIRST_OID

    # changes, each of a transaction

    def create(
        self, name: str, operations: Collection[str], tables: Collection[int], xid: int
    ) -> "SimCatalog":
        if name in self.publications:
            raise psycopg.errors.DuplicateObject
        made = SimPublication(
            name, self.oids, frozenset(operations), xid, self.rows + 1
        )
        whole = self._with(made, rows=self.rows + 1, oids=self.oids + 1)
        for oid in tables:
            whole = whole.add(name, oid, xid)
        return whole

    def add(self, name: str, oid: int, xid: int) -> "SimCatalog":
        made = self.publications[name]
        if oid in made.members:
            raise psycopg.errors.DuplicateObject
        members = {**made.members, oid: (self.oids, xid)}
        return self._with(replace(made, members=members), oids=self.oids + 1)

    def remove(self, name: str, oid: int) -> "SimCatalog":
        made = self.publications[name]
        if oid not in made.members:
            raise psycopg.errors.UndefinedObject
        members = {one: row for one, row in made.members.items() if one != oid}
        return self._with(replace(made, members=members))

    def publish(self, name: str, operations: Collection[str], xid: int) -> "SimCatalog":
        """SET (publish = …): another version of the row, whatever it says."""
        made = replace(
            self.publications[name],
            operations=frozenset(operations),
            xmin=xid,
            line=self.rows + 1,
        )
        return self._with(made, rows=self.rows + 1)

    def attach(self, leaf: int, root: int, xid: int) -> "SimCatalog":
        ties = {**self.ties, leaf: (root, xid)}
        return replace(self, ties=ties, version=self.version + 1)

    def detach(self, leaf: int) -> "SimCatalog":
        ties = {one: tie for one, tie in self.ties.items() if one != leaf}
        return replace(self, ties=ties, version=self.version + 1)

    def _with(self, made: SimPublication, **changed: int) -> "SimCatalog":
        return replace(
            self,
            publications={**self.publications, made.name: made},
            version=self.version + 1,
            **changed,  # type: ignore[arg-type]
        )

    @property
    def members(self) -> frozenset[int]:
        """Tables that were added to some publication by their names."""
        made = self.publications.values()
        return frozenset(oid for one in made for oid in one.members)

    # what pgoutput and the executor make of it

    def root(self, oid: int) -> int | None:
        tie = self.ties.get(oid)
        return tie[0] if tie else None

    def operations(self, oid: int) -> frozenset[str]:
        """Return what of a table's rows is published, for whatever reason."""
        mine = {oid, self.root(oid)}
        return frozenset(
            operation
            for made in self.publications.values()
            if mine & made.members.keys()
            for operation in made.operations
        )

    def sent_as(self, oid: int) -> int:
        """Return as which table's its rows go out: the topmost that is published."""
        root = self.root(oid)
        through = any(
            made.via_root and root in made.members
            for made in self.publications.values()
        )
        return root if through and root is not None else oid
