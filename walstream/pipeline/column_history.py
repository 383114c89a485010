"""Facts of a table's columns in the catalog, and from where on they count: pure.

The stream describes a column by its name, type and modifier. Formats that write a
schema also need what only the catalog has, as of now: NOT NULL, the default, a domain's
base, an enum's labels. A replay must write the same bytes, so each set of facts is kept
with the place from which rows were written under it, as keys are (`row_key`).
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Final

from walstream.lsn import Lsn
from walstream.op import ColumnFacts
from walstream.pipeline.pgoutput.messages import Relation
from walstream.pipeline.root_key import Place
from walstream.pipeline.state_document import StateDocuments

_DIGEST_BYTES: Final = 12

Labels = tuple[tuple[int, str | None], ...]
"""Labels of enums, each with its column's index; None: a null, to be allowed."""


@dataclass(frozen=True, slots=True)
class FactSet:
    """The facts of a table's columns, in the order of its rows."""

    shape: str  # of the Relation message that they go with: `shape_of`
    columns: tuple[ColumnFacts, ...]
    from_lsn: Lsn = 0  # rows of transactions with a commit LSN from here on
    from_seq: int = 0  # and within the first of them: from this number on

    @property
    def since(self) -> Place:
        return self.from_lsn, self.from_seq


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A ColumnFacts as it is stored: that one is compiled, and tells no types then."""

    not_null: bool = False
    default: str | None = None
    type_oid: int = 0
    type_name: str = ""
    base_oid: int = 0
    base_name: str = ""
    base_modifier: int = -1
    element_oid: int = 0
    element_name: str = ""
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredFacts:
    """A FactSet as it is stored."""

    shape: str
    columns: tuple[StoredColumn, ...]
    from_lsn: Lsn = 0
    from_seq: int = 0


FACTS: Final = StateDocuments("facts/", tuple[StoredFacts, ...])
"""By the oid of a table."""
_FIELDS: Final = tuple(one.name for one in fields(StoredColumn))


def shape_of(relation: Relation) -> str:
    """Return a digest of the columns that a Relation message describes."""
    columns = [
        (column.name, column.type_oid, column.type_modifier)
        for column in relation.columns
    ]
    made = hashlib.blake2b(repr(columns).encode(), digest_size=_DIGEST_BYTES)
    return made.hexdigest()


class FactHistory:
    """The sets of one table, oldest first; those of a place never change later."""

    def __init__(self, stored: Iterable[StoredFacts] = ()) -> None:
        self._sets = [
            FactSet(
                one.shape,
                tuple([_facts(column) for column in one.columns]),
                one.from_lsn,
                one.from_seq,
            )
            for one in stored
        ]

    def at(self, place: Place, shape: str) -> FactSet | None:
        """Return the set under which a row there is written; None: none is known.

        The place decides, among those of this shape: a description may come again
        behind another one.
        """
        same = [one for one in self._sets if one.shape == shape]
        before = [one for one in same if one.since <= place]
        return before[-1] if before else next(iter(same), None)

    def learn(self, place: Place, shape: str, columns: Sequence[ColumnFacts]) -> bool:
        """Put facts in force from a place on, where nothing was written yet.

        Return whether that is a change.
        """
        found = tuple(columns)
        last = self._last(place)
        if last is not None and (last.shape, last.columns) == (shape, found):
            return False
        self._sets.insert(self._count(place), FactSet(shape, found, *place))
        return True

    def _last(self, place: Place) -> FactSet | None:
        count = self._count(place)
        return self._sets[count - 1] if count else None

    def _count(self, place: Place) -> int:
        return sum(one.since <= place for one in self._sets)

    def forget_below(self, oldest: Lsn) -> None:
        """Drop the sets that no replay needs: none begins below `oldest`."""
        self._sets = self._sets[max(self._count((oldest, 0)) - 1, 0) :]

    def boundaries(self) -> Iterable[Lsn]:
        """Return the LSNs at which the facts change."""
        return (one.from_lsn + bool(one.from_seq) for one in self._sets[1:])

    @property
    def stored(self) -> tuple[StoredFacts, ...]:
        """Stored form, for the constructor."""
        return tuple(
            StoredFacts(
                one.shape,
                tuple([_stored(column) for column in one.columns]),
                one.from_lsn,
                one.from_seq,
            )
            for one in self._sets
        )


NO_FACTS: Final = FactHistory()
"""That of all tables, where no format asks for facts."""


def _stored(column: ColumnFacts) -> StoredColumn:
    return StoredColumn(*[getattr(column, name) for name in _FIELDS])


def _facts(column: StoredColumn) -> ColumnFacts:
    return ColumnFacts(*[getattr(column, name) for name in _FIELDS])
