"""A session with the simulated server: what walstream asks of its catalogs."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import psycopg

from tests.simulation.catalog import SimCatalog
from walstream.errors import Transient
from walstream.postgres import partition_root, publication, publication_catalog

if TYPE_CHECKING:
    from tests.simulation.server import SimServer

_LOCKED: Final = 0.02  # share of changes that find a table locked
_NAME: Final = r'"(\w+)"'
_CREATE: Final = re.compile(
    rf"CREATE PUBLICATION {_NAME}(?: FOR TABLE (.*?))? WITH \(publish = '([^']*)'"
)
_ALTER: Final = re.compile(rf"ALTER PUBLICATION {_NAME} (ADD|DROP) TABLE (.*);")
_TABLE: Final = re.compile(rf"ONLY {_NAME}\.{_NAME}")
Rows = list[tuple[Any, ...]]


class _Answer:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def fetchall(self) -> Rows:
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows[0] if self._rows else None


class SimSession:
    """A plain connection: a transaction of it changes the catalog at its end."""

    def __init__(self, server: "SimServer") -> None:
        self.info = SimpleNamespace(server_version=180000)
        self.owner = server.world.owner
        self._server = server
        self._life = server.lives
        self._working: SimCatalog | None = None  # of the open transaction
        self._xid = 0  # of it
        self._answers: dict[str, Callable[[Any], Rows]] = {
            publication._PUBLICATIONS: self._publications,
            publication._NAMES: self._names,
            publication_catalog._INHERITS: self._inherits,
            partition_root._IDENTITIES: self._identities,
            "SELECT pg_current_xact_id()::text": lambda _: [(str(self._number()),)],
            "SELECT pg_xact_status(%s::text::xid8)": self._status,
            "SELECT oid::bigint FROM pg_class WHERE oid = ANY (%s::oid[])": self._there,
        }

    def close(self) -> None:
        self._server.unlock(self)

    @property
    def _catalog(self) -> SimCatalog:
        return self._server.catalog if self._working is None else self._working

    def execute(self, statement: str | bytes, values: Any = ()) -> _Answer:
        self._server.world.port("query")
        if self._server.lives != self._life:
            raise Transient("a query: terminating connection")
        if isinstance(statement, bytes):
            self._change(statement.decode())
            return _Answer([])
        if statement.startswith("SET LOCAL lock_timeout"):
            return _Answer([])
        return _Answer(self._answers[statement](values))

    @contextmanager
    def transaction(self) -> Iterator["SimSession"]:
        """Take effect whole, or not at all; within another one as a savepoint."""
        before = self._working
        outer = before is None
        if outer:
            self._working, self._xid = self._server.catalog, 0
        try:
            yield self
            if outer:
                self._commit()
        except psycopg.Rollback as rollback:
            self._working = before
            if rollback.transaction is not self:  # type: ignore[comparison-overlap]
                raise
        except BaseException:
            self._working = before
            raise
        finally:
            if outer:
                self._server.abandon(self._xid)
                self._working = None
                self._server.unlock(self)

    def _commit(self) -> None:
        server, made = self._server, self._catalog
        server.world.port("commit")
        if self._xid:
            server.change(made, self._xid)
        server.world.port("committed")

    def _number(self) -> int:
        self._xid = self._xid or self._server.begin()
        return self._xid

    def _change(self, statement: str) -> None:
        server = self._server
        if made := _CREATE.match(statement):
            name, tables, operations = made.groups()
            self._working = self._catalog.create(
                name, operations.split(", "), self._oids(tables or ""), self._number()
            )
            return
        altered = _ALTER.fullmatch(statement)
        if altered is None:
            raise NotImplementedError(statement)
        name, verb, tables = altered.groups()
        server.lock(self)
        if server.world.random.random() < _LOCKED:
            raise psycopg.errors.LockNotAvailable
        xid = self._number()
        for oid in self._oids(tables):
            catalog = self._catalog
            self._working = (
                catalog.add(name, oid, xid)
                if verb == "ADD"
                else catalog.remove(name, oid)
            )

    def _oids(self, tables: str) -> list[int]:
        found = {one.name: one.oid for one in self._server.tables}
        return [found[name] for _, name in _TABLE.findall(tables)]

    def _name(self, oid: int) -> str:
        return self._server.table(oid).full_name

    # answers

    def _publications(self, wanted: dict[str, Any]) -> Rows:
        catalog = self._catalog
        places = [f"(0,{made.line})" for made in catalog.publications.values()]
        operations = ("insert", "update", "delete", "truncate")
        return [
            (
                name,
                made.oid,
                False,
                *(operation in made.operations for operation in operations),
                made.via_root,
                [],
                oids := sorted(made.members),
                [self._name(oid) for oid in oids],
                made.xmin,
                f"(0,{made.line})",
                places,
                [[*made.members[oid], 0] for oid in oids],
                [],
                10,
                publication.WITHOUT_GENERATED,
                [],
            )
            for name, made in sorted(catalog.publications.items())
            if wanted["names"] is None or name in wanted["names"]
        ]

    def _names(self, values: tuple[Any, ...]) -> Rows:
        oids, leaves, _ = values
        found = set(oids)
        if leaves:
            ties = self._catalog.ties.items()
            found |= {leaf for leaf, (root, _) in ties if root in found}
            found -= {one.oid for one in self._server.tables if one.leaves}
        return [(name,) for name in sorted(map(self._name, found))]

    def _inherits(self, _: object) -> Rows:
        return [
            (leaf, root, str(xmin), "p", leaf, leaf + 1, [])
            for leaf, (root, xmin) in sorted(self._catalog.ties.items())
        ]

    def _identities(self, values: tuple[Any, ...]) -> Rows:
        (oids,) = values
        found = [self._server.table(oid) for oid in oids]
        return [
            (one.oid, "public", one.name, one.shape.identity == "f", one.identity)
            for one in found
        ]

    def _there(self, values: tuple[Any, ...]) -> Rows:
        (oids,) = values
        return [(one.oid,) for one in self._server.tables if one.oid in oids]

    def _status(self, values: tuple[Any, ...]) -> Rows:
        xid = int(values[0])
        if xid in self._server.altered:
            return [("committed",)]
        return [("in progress" if xid in self._server.running else "aborted",)]
