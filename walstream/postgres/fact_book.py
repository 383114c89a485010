"""Facts of a source's columns: learned from the catalog, and stored with its position.

The catalog is asked at each Relation message beyond all that was ever sent, since
PostgreSQL sends one after DDL, also if it describes the same columns. A replay takes
what is kept. A new label of an enum brings no Relation message, nor need the end of a
NOT NULL: the row that has it asks.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Protocol

from walstream.lsn import Lsn
from walstream.op import ColumnFacts
from walstream.pipeline.column_history import (
    FACTS,
    NO_FACTS,
    FactHistory,
    Labels,
    shape_of,
)
from walstream.pipeline.pgoutput.messages import Relation
from walstream.pipeline.ports import StateStore
from walstream.pipeline.root_key import Place
from walstream.pipeline.state_writer import StateWriter
from walstream.postgres import column_facts
from walstream.postgres.catalog import wait_until_visible
from walstream.postgres.connection import Connection

Session = Callable[[], AbstractContextManager[Connection]]


class FactRules(Protocol):
    """Facts of columns, and the places from which they count."""

    def known(
        self, relation: Relation, place: Place, labels: Labels = (), /
    ) -> FactHistory | None:
        """Return a table's, if nothing is to be asked there; else None.

        `labels` are of a row that cannot be written without them.
        """

    def look(
        self,
        session: Session,
        relation: Relation,
        xid: int,
        place: Place,
        labels: Labels,
        /,
    ) -> None:
        """Learn the facts as of transaction `xid` or later; waits for the server."""


class NoFacts:
    """Those of a source whose sinks' formats need none."""

    def known(
        self, _relation: Relation, _place: Place, _labels: Labels = ()
    ) -> FactHistory:
        return NO_FACTS

    def look(
        self,
        _session: Session,
        _relation: Relation,
        _xid: int,
        _place: Place,
        _labels: Labels,
    ) -> None:
        """Learn nothing."""


class FactBook:
    """The fact histories of a source's tables."""

    def __init__(self, positions: StateStore, *, unsent: Lsn, oldest: Lsn) -> None:
        """Nothing was ever sent from `unsent` on; no replay begins below `oldest`."""
        self._positions = positions
        self._writer = StateWriter(positions)
        self._unsent = unsent
        self._oldest = oldest
        self._histories: dict[int, FactHistory] = {}
        self._asked: dict[int, tuple[Place, str, Labels]] = {}  # last, by oid

    def known(
        self, relation: Relation, place: Place, labels: Labels = ()
    ) -> FactHistory | None:
        shape = shape_of(relation)
        history = self._history(relation.oid)
        found = history.at(place, shape)
        if found is None:
            return None
        if self._asked.get(relation.oid) == (place, shape, labels):
            return history
        if labels:
            return history if _has(found.columns, labels) else None
        return history if place < (self._unsent, 0) else None

    def look(
        self,
        session: Session,
        relation: Relation,
        xid: int,
        place: Place,
        labels: Labels,
    ) -> None:
        with session() as connection:
            wait_until_visible(connection, xid)
            found = column_facts.of_columns(connection, relation.oid, relation.columns)
        shape = shape_of(relation)
        history = self._history(relation.oid)
        known = history.at(place, shape)
        if known is not None:
            found = _without_loss(found, known.columns)
        documents: dict[str, object] = {}
        if history.learn(place, shape, _with(found, labels)):
            documents = FACTS.of(str(relation.oid)).entry(history.stored)
        self._writer.write(documents)
        self._asked[relation.oid] = place, shape, labels

    def _history(self, oid: int) -> FactHistory:
        if oid not in self._histories:
            stored = FACTS.of(str(oid)).read(self._positions)
            history = self._histories[oid] = FactHistory(stored or ())
            history.forget_below(self._oldest)
        return self._histories[oid]


def _without_loss(
    found: Sequence[ColumnFacts], known: Sequence[ColumnFacts]
) -> tuple[ColumnFacts, ...]:
    """Keep what was known of a column whose type is gone by now."""
    return tuple(
        now if now.type_name else before
        for now, before in zip(found, known, strict=True)
    )


def _has(columns: Sequence[ColumnFacts], labels: Labels) -> bool:
    return all(
        not columns[index].not_null if label is None else label in columns[index].labels
        for index, label in labels
    )


def _with(columns: Sequence[ColumnFacts], labels: Labels) -> list[ColumnFacts]:
    """Add what the catalog no longer has: a label renamed since, a null forbidden."""
    found = list(columns)
    for index, label in labels:
        if label is None:
            found[index] = replace(found[index], not_null=False)
        elif label not in found[index].labels:
            more = (*found[index].labels, label)
            found[index] = replace(found[index], labels=more)
    return found
