"""State of the source, as a detached sink's worker reads it: keys and facts of tables.

The source's own worker is ahead, and alone writes them: else the two would name ops, or
write records, differently.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from walstream.errors import Restart, Transient
from walstream.lsn import Lsn
from walstream.pipeline.column_history import FACTS, FactHistory, Labels, shape_of
from walstream.pipeline.pgoutput.messages import Relation
from walstream.pipeline.root_key import ROOTS, Place, RootKeys
from walstream.pipeline.row_key import KEYS, KeyHistory
from walstream.pipeline.state_document import StoredDocuments
from walstream.postgres.catalog import Looked, TableFacts
from walstream.postgres.connection import Connection
from walstream.postgres.fact_book import Session
from walstream.state.store import LmdbStore

Found = TypeVar("Found")


class SourceFolder:
    """State of the source's own worker; read one at a time.

    LMDB lets a process open a file once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def read(self, what: Callable[[StoredDocuments], Found | None]) -> Found | None:
        """Return what is asked for; None: nothing is kept yet."""
        with self._lock, LmdbStore.open_read_only(self._folder) as positions:
            return what(positions) if positions else None


class BorrowedKeys:
    """The key histories of a source, as its own worker knows them."""

    def __init__(self, state: SourceFolder) -> None:
        self._state = state
        self._histories: dict[str, KeyHistory] = {}
        self._roots: dict[int, RootKeys] = {}

    def history(self, full_name: str) -> KeyHistory | None:
        return self._histories.get(full_name)

    def learn(self, facts: Mapping[str, TableFacts], _end: Lsn, _oldest: Lsn) -> None:
        """Read what the source knows of these tables."""
        for full_name, table in facts.items():
            self._borrow(full_name, table.oid)

    def knows(self, relation: Relation, place: Place) -> bool:
        """Read again what the source knows of a root whose description changed."""
        root = self._roots.get(relation.oid)
        known = f"{relation.namespace}.{relation.name}" in self._histories
        return known and (root is None or root.agrees(relation, place))

    def meet(self, relation: Relation, _looked: Looked, _place: Place) -> None:
        """Read what the source knows of a relation."""
        self._borrow(f"{relation.namespace}.{relation.name}", relation.oid)

    def watch(self, _connection: Connection) -> None:
        """Raise Restart where the source found another key or name of a root."""
        for oid, root in list(self._roots.items()):
            if self._root(oid).stored != root.stored:
                raise Restart("the source found a root's new identity or name")

    def regained(self) -> Sequence[int]:
        """Leave it to the source."""
        return ()

    def told(self, oid: int) -> None:
        """Ignore it."""

    def _root(self, oid: int) -> RootKeys:
        return RootKeys(self._state.read(ROOTS.of(str(oid)).read) or ())

    def _borrow(self, full_name: str, oid: int) -> None:
        stored = self._state.read(KEYS.of(full_name).read)
        if stored is None:
            raise Transient(f"the source has not seen table {full_name!r} yet")
        self._histories[full_name] = history = KeyHistory(stored)
        history.roots = self._roots
        if (root := self._root(oid)).known:
            self._roots[oid] = root


class BorrowedFacts:
    """The fact histories of a source, as its own worker knows them."""

    def __init__(self, state: SourceFolder) -> None:
        self._state = state
        self._histories: dict[int, FactHistory] = {}
        self._read: dict[int, tuple[Place, Labels]] = {}  # last, by oid

    def known(
        self, relation: Relation, place: Place, labels: Labels = ()
    ) -> FactHistory | None:
        """Return what was read for this place."""
        if self._read.get(relation.oid) != (place, labels):
            return None
        return self._histories[relation.oid]

    def look(
        self,
        _session: Session,
        relation: Relation,
        _xid: int,
        place: Place,
        labels: Labels,
    ) -> None:
        """Read what the source knows; raise Transient if it was not there yet."""
        stored = self._state.read(FACTS.of(str(relation.oid)).read)
        history = FactHistory(stored or ())
        if history.at(place, shape_of(relation)) is None:
            full_name = f"{relation.namespace}.{relation.name}"
            raise Transient(f"the source has not seen table {full_name!r} yet")
        self._histories[relation.oid] = history
        self._read[relation.oid] = place, labels
