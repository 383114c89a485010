"""The positions of one batch's rows: locked in one order, moved, and written at once.

Instances and partitions that write the same rows take their positions in the same order
so that none waits for another in a circle; and an op costs no question of its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg.rows import tuple_row

from consumer.mirror.position_store import Store, array
from consumer.mirror.row_position import key_texts, number_of
from consumer.mirror.source_generation import Era, era
from consumer.op import Op

Connection = psycopg.Connection[Any]
Key = Mapping[str, str | None]
Texts = tuple[str | None, ...]


class _Entry:
    """A row's position; what was written last is compared with it."""

    __slots__ = ("moved", "position")

    def __init__(self, position: tuple[int, int, int]) -> None:
        self.position = position
        self.moved = False


class Held:
    """The positions that one transaction holds locked, until it ends."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, Texts], _Entry] = {}
        self._stores: list[Store] = []
        self._era: Era | None = None

    def take(
        self, connection: Connection, wanted: Mapping[Store, Sequence[Texts]]
    ) -> None:
        """Lock these rows' positions; those that there are none of begin at nothing."""
        self._stores = sorted(wanted, key=lambda store: store.table)
        for store in self._stores:
            texts = list(dict.fromkeys(wanted[store]))
            arrays = [array(column) for column in zip(*texts, strict=True)]
            with connection.cursor(row_factory=tuple_row) as cursor:
                cursor.execute(store.add(), arrays, prepare=True)
                found = cursor.execute(store.take(), arrays, prepare=True).fetchall()
            rows: dict[str, _Entry] = {}
            for number, row, *position in found:
                generation, lsn, seq_id = map(int, position)
                entry = rows.setdefault(row, _Entry((generation, lsn, seq_id)))
                self._entries[store.table, texts[number - 1]] = entry

    def source_changed(self) -> None:
        self._era = None

    def same(self, store: Store, relation: str, one: Key, other: Key) -> bool | None:
        """Return whether two spellings are one key; None: not held."""
        entry = self._entries.get((store.table, key_texts(store, relation, one)))
        if entry is None:
            return None
        return entry is self._entries.get(
            (store.table, key_texts(store, relation, other))
        )

    def note(
        self, connection: Connection, store: Store, op: Op, key: Key
    ) -> bool | None:
        """Move a row's position to this op; False: a newer op wrote it; None: not held.

        What is not written before the transaction's end did not move.
        """
        found = self._entries.get(
            (store.table, key_texts(store, op.table.full_name, key))
        )
        if found is None:
            return None
        if self._era is None:
            self._era = era(connection, op)
        position = (self._era.of(op), op.lsn, number_of(op))
        if position <= found.position:
            return False
        found.position, found.moved = position, True
        return True

    def write(self, connection: Connection) -> None:
        """Write what moved."""
        moved: dict[str, dict[int, tuple[Texts, _Entry]]] = {}
        for (table, texts), entry in self._entries.items():
            if entry.moved:
                moved.setdefault(table, {})[id(entry)] = (texts, entry)
        for store in self._stores:
            entries = moved.get(store.table)
            if not entries:
                continue
            keys = zip(*(texts for texts, _ in entries.values()), strict=True)
            positions = zip(
                *(entry.position for _, entry in entries.values()), strict=True
            )
            arrays = [array(column) for column in keys]
            arrays += [array(map(str, column)) for column in positions]
            connection.execute(store.write(), arrays, prepare=True)
