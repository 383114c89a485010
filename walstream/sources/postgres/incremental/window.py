"""Window of a chunk: the stream's changes of its rows since it was requested. Pure.

A chunk is read at a moment that the stream has not reached, or has passed. Of a row
that the stream spoke of meanwhile the readers know more than the chunk, unless its
transaction was already seen by the chunk's snapshot. Two transactions that write the
same row end one after the other, so a row's last transaction decides for it.

Until the chunk is there any row may be in it; from then on its own alone are noted, so
that a busy table fills no memory while the stream is behind.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from walstream.op import Kind, ReplicationOp, Table
from walstream.row import UNCHANGED, NotSent, Row, Value
from walstream.sources.postgres.incremental.chunk import (
    Key,
    KeyChunk,
    Visibility,
)

MOST_ENTRIES: Final = 100_000
MOST_SIZE: Final = 32 << 20  # characters held of keys and rows


@dataclass(slots=True)
class _Entry:
    xid: int  # the last that spoke of the row
    # what was sent of a row that has toasted values unsent; None: readers have it
    # whole, or it is gone
    partial: Row | None = None
    table: Table | None = None  # of the partial row
    fresh: bool = False  # it came by an Insert: no older row fills it


class Window:
    """One table's rows, by key, since a chunk of them was asked for."""

    def __init__(
        self, most_entries: int = MOST_ENTRIES, most_size: int = MOST_SIZE
    ) -> None:
        self._entries: dict[Key, _Entry] = {}
        self._most_entries = most_entries
        self._most_size = most_size
        self._size = 0
        self._key: tuple[str, ...] | None = None  # columns of the key, of what was said
        self._of: AbstractSet[Key] | None = (
            None  # keys of the chunk; None: it is not there
        )
        self._seen: Visibility | None = None  # by the chunk
        self.full = False  # too much was said
        self.void = False  # that, or it was said under another key: read again

    def __len__(self) -> int:
        return len(self._entries)

    def note(self, op: ReplicationOp) -> None:
        """Take in an op on a row, whole as far as it can be."""
        if self.void or not self._same_key(op.table):
            return
        if self._seen is not None and self._seen.sees(op.xid):
            return  # the chunk has it
        if op.kind is Kind.DELETE:
            self._whole(_key(op.table, op.old or ()), op.xid)
        elif op.key_changed:
            self._whole(_key(op.table, op.old or ()), op.xid)
            self._whole(_key(op.table, op.new or (), op.old), op.xid)
        else:
            key = _key(op.table, op.new or (), op.old)
            if op.absent and op.new is not None and UNCHANGED in op.new:
                self._partial(key, op)
            else:
                self._whole(key, op.xid)
        if len(self._entries) > self._most_entries or self._size > self._most_size:
            self.full = True
            self._give_up()

    def focus(self, chunk: KeyChunk) -> None:
        """Note which rows are read: of others, and of what that saw, nothing is kept.

        What is dropped here is owed to the next chunk by its transaction alone.
        """
        self._of, self._seen = (
            {_key(chunk.table, row) for row in chunk.rows},
            chunk.seen,
        )
        for key in [
            key
            for key, entry in self._entries.items()
            if key not in self._of or chunk.seen.sees(entry.xid)
        ]:
            self._size -= sum(map(len, key)) + _size(self._entries.pop(key).partial)

    def _same_key(self, table: Table) -> bool:
        names = tuple(table.columns[index] for index in table.key)
        if self._key is None:
            self._key = names
        elif names != self._key:
            self._give_up()
        return not self.void

    def _give_up(self) -> None:
        self.void = True
        self._entries.clear()
        self._size = 0

    def _whole(self, key: Key, xid: int) -> None:
        if self._of is not None and key not in self._of:
            return
        entry = self._entries.get(key)
        if entry is None:
            self._entries[key] = _Entry(xid)
            self._size += sum(map(len, key))
            return
        self._size -= _size(entry.partial)
        entry.xid, entry.partial, entry.table = xid, None, None

    def _partial(self, key: Key, op: ReplicationOp) -> None:
        if self._of is not None and key not in self._of:
            return
        new = op.new or ()
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(op.xid)
            self._size += sum(map(len, key))
            entry.fresh = op.kind is Kind.INSERT
        elif op.kind is Kind.INSERT:
            self._size -= _size(entry.partial)
            entry.fresh = True
        elif entry.partial is None or entry.table is None:
            entry.xid = op.xid
            return  # readers have it whole, and fill it themselves
        else:
            new = _merged(op.table, new, entry.table, entry.partial)
            self._size -= _size(entry.partial)
        entry.xid, entry.partial, entry.table = op.xid, new, op.table
        self._size += _size(new)

    def agrees(self, chunk: KeyChunk) -> bool:
        """Return whether the stream names rows by the columns that the chunk has."""
        table = chunk.table
        names = tuple(table.columns[index] for index in table.key)
        return self._key in {None, names}

    def rows(
        self, chunk: KeyChunk, first: int, most: int
    ) -> Iterator[tuple[int, Table, Row]]:
        """Yield what readers need of these rows of a chunk, filled where need be.

        Each with its index in the chunk.
        """
        for index, row in enumerate(chunk.rows[first : first + most], first):
            entry = self._entries.get(_key(chunk.table, row))
            if entry is None:
                yield index, chunk.table, row
            elif entry.partial is not None and entry.table is not None:
                if chunk.seen.sees(entry.xid):
                    yield index, chunk.table, row
                elif not entry.fresh:
                    merged = _merged(entry.table, entry.partial, chunk.table, row)
                    yield index, entry.table, merged


def _key(table: Table, row: Row, other: Row | None = None) -> Key:
    """Return the row key; values that were not sent are in the other row."""
    values: list[Value] = [row[index] for index in table.key]
    if other is not None and UNCHANGED in values:
        values = [
            other[index] if value is UNCHANGED else value
            for index, value in zip(table.key, values, strict=True)
        ]
    return tuple(map(str, values))


def _merged(table: Table, row: Row, below: Table, filling: Row) -> Row:
    """Fill what is not sent in a row from one below it, by the columns' names."""
    if table.columns == below.columns:
        return [
            other if value is UNCHANGED else value
            for value, other in zip(row, filling, strict=True)
        ]
    found = dict(zip(below.columns, filling, strict=True))
    return [
        found.get(name, UNCHANGED) if value is UNCHANGED else value
        for name, value in zip(table.columns, row, strict=True)
    ]


def _size(row: Sequence[Value] | None) -> int:
    if row is None:
        return 0
    return sum(
        len(value)
        for value in row
        if value is not None and not isinstance(value, NotSent)
    )
