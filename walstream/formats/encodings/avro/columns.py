"""The columns of one table as Avro: `TableColumns` in another encoding."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, cast

import orjson

from walstream.errors import WalstreamError
from walstream.formats.debezium.columns import UNREADABLE, UNSENT, TableColumns
from walstream.formats.encodings.avro import primitive, tree
from walstream.formats.encodings.avro.writers import Write, int64, writer
from walstream.op import ReplicationOp
from walstream.row import UNCHANGED, NotSent, Row

_OTHER: Final = 0
_TEXT: Final = 1
_LONG: Final = 2


class AvroColumns:
    """Writes the rows of a table, in the order of its fields."""

    def __init__(self, columns: TableColumns) -> None:
        self.columns = columns
        self.writers: dict[int, Write] = {}
        self._nulls: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []
        for place, (index, (_, schema)) in enumerate(columns.fields.items()):
            found = columns.types[index]
            # the type of a column that is never null may be optional all the same
            bare = writer(found, partial(self._count, index))
            self.writers[index] = bare
            before, null = tree.branches(schema)
            empty = columns.empty[place]
            self._parts += [before, b""]
            if empty == "null":
                self._nulls.append((null, b""))
            else:
                self._nulls.append((b"", tree.document(schema, empty)))
        self._writers = list(self.writers.values())
        forms: dict[Write, int] = {primitive.text: _TEXT, int64: _LONG}
        self._forms = bytes(forms.get(one, _OTHER) for one in self._writers)
        self._all = len(columns.types) == columns.width

    def _count(self, index: int, reason: str) -> None:
        columns = self.columns
        columns.lost[columns.table.columns[index], reason] += 1

    def write(self, op: ReplicationOp, row: Row) -> bytes:
        """Write a row of this table as a record; `op` is named if that fails."""
        if op.absent:
            return self._write_absent(op, row)
        values = cast("Sequence[Any]", row)
        columns = self.columns
        if len(values) != columns.width:
            raise self.refused(op, row)
        if not self._all:
            values = [values[index] for index in columns.indexes]
        parts = self._parts.copy()
        try:
            for place, value in enumerate(values):
                written: bytes | None
                if value is None:
                    written = None
                elif (form := self._forms[place]) == _TEXT:
                    written = primitive.text(value)
                elif form == _LONG:
                    written = int64(value)
                else:
                    written = self._writers[place](value)
                if written is None:
                    parts[2 * place], written = self._nulls[place]
                parts[2 * place + 1] = written
        except UNREADABLE:
            raise self.refused(op, row) from None
        return b"".join(parts)

    def _write_absent(self, op: ReplicationOp, row: Row) -> bytes:
        """Write a row that lacks some value."""
        parts = self._parts.copy()
        values = cast("Sequence[Any]", row)
        for place, index in enumerate(self.columns.indexes):
            value = values[index]
            written: bytes | None = None
            if value is UNCHANGED:
                written = self._unavailable(index)
            elif isinstance(value, str):
                try:
                    written = self._writers[place](value)
                except ValueError:
                    raise self.refused(op, row) from None
            elif not (value is None or isinstance(value, NotSent)):
                raise self.refused(op, row)
            if written is None:
                parts[2 * place], written = self._nulls[place]
            parts[2 * place + 1] = written
        return b"".join(parts)

    def refused(self, op: ReplicationOp, row: Row) -> WalstreamError:
        """Find the column whose text is not one of its type in Avro."""
        return self.columns.refused(op, row, self.writers)

    def _unavailable(self, index: int) -> bytes | None:
        found = self.columns.types[index]
        if found.unavailable is None:
            self._count(index, UNSENT)
            return None
        return tree.plain_bytes(found.schema, orjson.loads(found.unavailable))
