"""The columns of one table as Avro: `TableColumns` in another encoding."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, cast

import orjson

from walstream.errors import WalstreamError
from walstream.formats.debezium.columns import UNREADABLE, UNSENT, TableColumns
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.connect_type import ConnectType
from walstream.formats.encodings.avro import tree
from walstream.formats.encodings.avro.primitive import long
from walstream.formats.encodings.avro.writers import Write, bits_of, whole, writer
from walstream.op import ReplicationOp
from walstream.row import UNCHANGED, NotSent, Row

_OTHER: Final = 0
_TEXT: Final = 1
_WHOLE: Final = 2
_SHORT: Final = 64  # bytes: the length of fewer is one byte


class AvroField:
    """A field of a record: what its values have before them, and what writes them."""

    def __init__(self, found: ConnectType, schema: Schema, write: Write) -> None:
        """Take from `schema` whether it may be null; most types need no `write`."""
        self.before, self.null = tree.branches(schema)
        """Before a value; and in the place of one that is null, b"" if none may be."""
        self.write = write
        self._bare = found.bare
        self._bits = bits_of(found)
        self._form = _OTHER
        if found.text or found.bare is not None:
            self._form = _TEXT
        elif self._bits:
            self._form = _WHOLE
        self._heads = [self.before + long(size) for size in range(_SHORT)]

    def put(self, value: Any, parts: list[bytes]) -> bool:
        """Add a value to a record's parts; False: it is null, or has no form."""
        if value is None:
            parts.append(self.null)
            return False
        form = self._form
        if form == _WHOLE:
            if self.before:
                parts.append(self.before)
            parts.append(whole(value, self._bits))
            return True
        if form == _OTHER:
            written = self.write(value)
            if written is None:
                parts.append(self.null)
                return False
            parts.append(self.before)
            parts.append(written)
            return True
        shown: str = value if self._bare is None else self._bare(value)
        text = shown.encode()
        size = len(text)
        parts.append(self._heads[size] if size < _SHORT else self.before + long(size))
        parts.append(text)
        return True


class AvroColumns:
    """Writes the rows of a table, in the order of its fields."""

    def __init__(self, columns: TableColumns) -> None:
        self.columns = columns
        self.writers: dict[int, Write] = {}
        self._fields: list[AvroField] = []
        for place, (index, (_, schema)) in enumerate(columns.fields.items()):
            found = columns.types[index]
            # the type of a column that is never null may be optional all the same
            bare = writer(found, partial(self._count, index))
            self.writers[index] = bare
            field = AvroField(found, schema, bare)
            empty = columns.empty[place]
            if empty != "null":
                field.null = tree.document(schema, empty)
            self._fields.append(field)
        self._all = len(columns.types) == columns.width

    def _count(self, index: int, reason: str) -> None:
        columns = self.columns
        columns.lost[columns.table.columns[index], reason] += 1

    def write(self, op: ReplicationOp, row: Row) -> bytes:
        """Write a row of this table as a record; `op` is named if that fails."""
        parts: list[bytes] = []
        self.put(op, row, parts)
        return b"".join(parts)

    def put(self, op: ReplicationOp, row: Row, parts: list[bytes]) -> None:
        """Add a row to a record's parts."""
        if op.absent:
            self._put_absent(op, row, parts)
            return
        # a list is looked at without calls
        values: list[Any] = row if isinstance(row, list) else list(row)
        if len(values) != self.columns.width:
            raise self.refused(op, row)
        if not self._all:
            values = [values[index] for index in self.columns.indexes]
        try:
            for place, value in enumerate(values):
                self._fields[place].put(value, parts)
        except UNREADABLE:
            raise self.refused(op, row) from None

    def _put_absent(self, op: ReplicationOp, row: Row, parts: list[bytes]) -> None:
        """Add a row that lacks some value."""
        values = cast("Sequence[Any]", row)
        for place, index in enumerate(self.columns.indexes):
            field, value = self._fields[place], values[index]
            if value is UNCHANGED:
                written = self._unavailable(index)
                if written is None:
                    parts.append(field.null)
                else:
                    parts.append(field.before)
                    parts.append(written)
            elif isinstance(value, NotSent):
                parts.append(field.null)
            elif value is None or isinstance(value, str):
                try:
                    field.put(value, parts)
                except ValueError:
                    raise self.refused(op, row) from None
            else:
                raise self.refused(op, row)

    def refused(self, op: ReplicationOp, row: Row) -> WalstreamError:
        """Find the column whose text is not one of its type in Avro."""
        return self.columns.refused(op, row, self.writers)

    def _unavailable(self, index: int) -> bytes | None:
        found = self.columns.types[index]
        if found.unavailable is None:
            self._count(index, UNSENT)
            return None
        return tree.plain_bytes(found.schema, orjson.loads(found.unavailable))
