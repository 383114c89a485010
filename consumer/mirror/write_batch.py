"""Writes of a batch that wait for its end: one statement for many rows.

Ops of different rows may change places where nothing in the target sees their order:
see `Shape.plain`. Those of one row keep theirs: the first of each row make a round, the
second of each the next one.
"""

from collections.abc import Callable, Iterable
from typing import Final

import psycopg

from consumer.handler import Transaction
from consumer.mirror import statement
from consumer.mirror.position_store import array
from consumer.mirror.table_shape import TargetTable
from consumer.mirror.table_writer import Row, Rows
from consumer.op import Op

Missing = Callable[[Rows, Op], None]
"""What to do with an Update of a row that is not there."""

# what an op raises by itself tells of it; here nobody knows which one it was
_OF_AN_OP: Final = (
    psycopg.IntegrityError,
    psycopg.DataError,
    psycopg.ProgrammingError,
    psycopg.NotSupportedError,
)


class _Round:
    """Writes of different rows, by what is done and to which columns."""

    def __init__(self) -> None:
        self.upserts: dict[tuple[str, ...], list[Row]] = {}
        self.updates: dict[tuple[str, ...], list[tuple[Row, Op]]] = {}
        self.deletes: list[Row] = []


class Later:
    """The writes of one transaction that are to come, by table."""

    def __init__(self, missing: Missing) -> None:
        self._missing = missing
        self._rounds: dict[TargetTable, list[_Round]] = {}
        self._writes: dict[TargetTable, dict[tuple[str | None, ...], int]] = {}

    def upsert(self, rows: Rows, key: Row, row: Row) -> None:
        """Insert a whole row, or give it to the one that has its key."""
        upserts = self._round(rows.shape, key).upserts
        upserts.setdefault(rows.writable(row), []).append(row)

    def update(self, rows: Rows, key: Row, row: Row, op: Op) -> bool:
        """Set what is sent of a row; False: there is nothing to set."""
        columns = rows.settable(row, key)
        if not columns:
            return False
        updates = self._round(rows.shape, key).updates
        updates.setdefault(columns, []).append(({**row, **key}, op))
        return True

    def delete(self, rows: Rows, key: Row) -> None:
        self._round(rows.shape, key).deletes.append(key)

    def _round(self, shape: TargetTable, key: Row) -> _Round:
        writes = self._writes.setdefault(shape, {})
        rounds = self._rounds.setdefault(shape, [])
        texts = tuple(key.values())
        number = writes.get(texts, 0)
        writes[texts] = number + 1
        if number == len(rounds):
            rounds.append(_Round())
        return rounds[number]

    def write_all(self, tx: Transaction) -> None:
        for shape in [*self._rounds]:
            self.write(Rows(tx, shape))

    def write(self, rows: Rows) -> None:
        """Write what waits of one table.

        What the target refuses rolls the batch back, as a deadlock does: then each op
        is done alone, and the right one is told.
        """
        self._writes.pop(rows.shape, None)
        try:
            for one in self._rounds.pop(rows.shape, []):
                self._write(rows, one)
        except _OF_AN_OP as error:
            raise psycopg.errors.SerializationFailure(
                "a batch was refused: its ops are applied one by one"
            ) from error

    def _write(self, rows: Rows, one: _Round) -> None:
        for columns, updates in one.updates.items():
            wanted = (*columns, *rows.shape.key)
            arrays = _arrays(wanted, [row for row, _ in updates])
            found = rows.run_many("update", columns, statement.update_many, arrays)
            if len(found) < len(updates):
                for number, (row, op) in enumerate(updates, 1):
                    if number not in found:
                        self._add(rows, one, row, op)
        for columns, many in one.upserts.items():
            arrays = _arrays(columns, many)
            rows.run_many("upsert", columns, statement.upsert_many, arrays)
        if one.deletes:
            arrays = _arrays(rows.shape.key, one.deletes)
            rows.run_many("delete", (), statement.delete_many, arrays)

    def _add(self, rows: Rows, one: _Round, row: Row, op: Op) -> None:
        """Insert what an Update did not find, unless it lacks something."""
        if op.new.absent:
            self._missing(rows, op)
        else:
            one.upserts.setdefault(rows.writable(row), []).append(row)


def _arrays(columns: Iterable[str], rows: Iterable[Row]) -> list[str]:
    """Spell each column's values as an array of its type."""
    many = list(rows)
    return [array(row[name] for row in many) for name in columns]
