"""Key and name of a partition root's rows, as of each place: pure.

pgoutput describes a root together with a leaf, when it has not described that leaf
since it was changed. A root's new REPLICA IDENTITY, name or schema changes no leaf: the
stream says nothing of it until some leaf is described, and that depends on where a
connection began. So the description is kept, and holds in every replay, whatever that
one says.
"""

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from walstream.lsn import Lsn
from walstream.pipeline.pgoutput.messages import Relation
from walstream.pipeline.state_document import StateDocuments

Place = tuple[Lsn, int]
"""A transaction's commit LSN, and how many numbers it has taken."""


@dataclass(frozen=True, slots=True)
class RootKey:
    """A root's replica identity, and its name, which decides the topic."""

    columns: frozenset[str]  # empty under FULL: then it is the primary key
    full: bool = False
    schema: str = ""
    table: str = ""  # empty: kept by a walstream that kept no names

    @classmethod
    def described(cls, relation: Relation) -> Self:
        """Return what the stream says."""
        full = relation.replica_identity == "f"
        marked = (one.name for one in relation.columns if one.is_key)
        columns = frozenset(() if full else marked)
        return cls(columns, full, relation.namespace, relation.name)

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def names(self) -> bool:
        """Return whether the name was kept."""
        return bool(self.table)

    def fits(self, columns: Sequence[str]) -> bool:
        """Return whether rows of these columns can have it."""
        return self.columns <= set(columns)


@dataclass(frozen=True, slots=True)
class RootKeySince:
    """A root's key, and from where on it counts."""

    lsn: Lsn
    seq_id: int
    columns: tuple[str, ...]
    full: bool
    schema: str = ""
    table: str = ""
    later: bool = False  # there was an earlier one, which is forgotten

    @property
    def place(self) -> Place:
        return self.lsn, self.seq_id

    @property
    def key(self) -> RootKey:
        return RootKey(frozenset(self.columns), self.full, self.schema, self.table)


ROOTS: Final = StateDocuments("roots/", tuple[RootKeySince, ...])
"""By the oid of a partition root."""


class RootKeys:
    """Known keys of one root, oldest first."""

    def __init__(self, known: Iterable[RootKeySince] = ()) -> None:
        self._known = list(known)

    def at(self, place: Place) -> RootKey | None:
        """Return the key in force there; None: the stream's description is."""
        at = self._index(place)
        return self._known[at].key if at >= 0 else None

    def _index(self, place: Place) -> int:
        return bisect.bisect_right(self._known, place, key=lambda one: one.place) - 1

    @property
    def known(self) -> bool:
        """Return whether it was ever described."""
        return bool(self._known)

    def lacks(self, key: RootKey) -> bool:
        """Return whether the catalog differs from the key in force from now on."""
        return bool(self._known) and self._usable(key) != self.newest

    @property
    def newest(self) -> RootKey:
        return self._known[-1].key

    def _usable(self, key: RootKey) -> RootKey:
        """Take the name alone of a root without an identity.

        pgoutput may mark an index that is not valid yet.
        """
        if key.full or key.columns:
            return key
        return replace(key, columns=self.newest.columns, full=self.newest.full)

    def agrees(self, relation: Relation, place: Place) -> bool:
        """Return whether a description agrees with the known key."""
        return self.at(place) == RootKey.described(relation)

    def describe(self, relation: Relation, place: Place, unsent: Lsn) -> bool:
        """Store a description; return whether that is a change.

        Below `unsent` rows may have gone out before, under what counts there: then what
        the stream says counts from there on, unless a later one is known already.
        """
        key, now = RootKey.described(relation), self.at(place)
        if key == now:
            return False
        columns = [column.name for column in relation.columns]
        if now is None or place[0] >= unsent or not now.fits(columns):
            self._insert(place, key)
            return True
        if self._index((unsent, 0)) != self._index(place):
            return False
        self._insert((unsent, 0), key)
        return True

    def look(self, key: RootKey, lsn: Lsn) -> bool:
        """Store the catalog's key, beyond all ops sent; return whether it changed."""
        if not self.lacks(key):
            return False
        self._insert(max((lsn, 0), self._known[-1].place), self._usable(key))
        return True

    def _insert(self, place: Place, key: RootKey) -> None:
        columns = tuple(sorted(key.columns))
        fresh = RootKeySince(*place, columns, key.full, key.schema, key.table)
        at = self._index(place)
        if at >= 0 and self._known[at].place == place:
            self._known[at] = replace(fresh, later=self._known[at].later)
        else:
            self._known.insert(at + 1, fresh)

    def forget_below(self, oldest: Lsn) -> None:
        """Drop what no replay can need: none starts below `oldest`."""
        at = self._index((oldest, 0))
        if at > 0:
            self._known = self._known[at:]
            self._known[0] = replace(self._known[0], later=True)

    @property
    def known_from(self) -> Lsn:
        """LSN from which `at` is right; 0: from the first on."""
        if not self._known or not self._known[0].later:
            return 0
        return self._known[0].lsn + bool(self._known[0].seq_id)

    def boundaries(self) -> Iterable[Lsn]:
        """Return the transactions from which another key is in force."""
        return (one.lsn + bool(one.seq_id) for one in self._known)

    @property
    def stored(self) -> tuple[RootKeySince, ...]:
        """Stored form, for the constructor."""
        return tuple(self._known)
