"""The columns of one table in the format `op`: each may be null, and none is left out.

What the catalog says of NOT NULL counts for keys alone. An old row lacks what is not
in its replica identity; and rows of before a constraint are read after it, too.
"""

from collections import Counter
from dataclasses import replace

from walstream.formats.debezium.columns import TableColumns
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.names import field_name
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.types import ConnectTypes
from walstream.formats.encodings.op.types import Doubt, OpTypes, doubt_of
from walstream.op import ReplicationOp, Table
from walstream.row import NotSent, Row

Halves = dict[str, dict[str, str]]


class OpColumns(TableColumns):
    """Those of one table."""

    def __init__(self, table: Table, options: DebeziumOptions) -> None:
        self._spelled = Counter(
            field_name(name, options.adjust_fields) for name in table.columns
        )
        super().__init__(table, options)
        self.key_fields = {
            index: (name, _of_key(schema, optional=index not in table.key))
            for index, (name, schema) in self.key_fields.items()
        }
        doubts = [(index, doubt_of(found)) for index, found in self.types.items()]
        self.doubts: list[tuple[int, Doubt]] = [
            (index, found) for index, found in doubts if found is not None
        ]
        """Columns whose types do not hold every text."""

    def _types_of(self, options: DebeziumOptions) -> ConnectTypes:
        return OpTypes(options)

    def _field_name(self, column: str, options: DebeziumOptions) -> str:
        """Spell a name as an encoding takes it: never two of a table alike."""
        found = super()._field_name(column, options)
        if found == column or self._spelled[found] == 1:
            return found
        return field_name(column, "avro_unicode")

    def have_texts(self, old: Row | None, new: Row | None) -> bool:
        """Return whether `texts_of` has any, of either row."""
        return (new is not None and self._has_texts(new)) or (
            old is not None and self._has_texts(old)
        )

    def _has_texts(self, row: Row) -> bool:
        for index, doubts in self.doubts:
            value = row[index]
            if isinstance(value, str) and doubts(value):
                return True
        return False

    def texts_of(self, row: Row | None) -> dict[str, str]:
        """Return a row's values that their types do not hold, by column."""
        found: dict[str, str] = {}
        if row is not None:
            for index, doubts in self.doubts:
                value = row[index]
                if isinstance(value, str) and doubts(value):
                    found[self.table.columns[index]] = value
        return found

    def absent_of(self, row: Row | None) -> list[str]:
        """Return the names of the columns that were not sent."""
        return [
            name
            for name, value in zip(self.table.columns, row or (), strict=False)
            if isinstance(value, NotSent)
        ]


def _of_key(schema: Schema, *, optional: bool) -> Schema:
    """Return the schema of a key's column: a new default would move all rows."""
    return replace(schema, optional=optional, default="")


def known(op: ReplicationOp, row: Row) -> Row:
    """Return a row with nulls for what was not sent."""
    if not op.absent:
        return row
    return [None if isinstance(value, NotSent) else value for value in row]
