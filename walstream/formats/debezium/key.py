"""Keys of records: an object of the key columns, whose bytes decide the partition."""

from collections.abc import Sequence
from typing import Any, Final, cast

from walstream.errors import HistoryError
from walstream.formats.debezium.columns import UNREADABLE, TableColumns
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.json_text import json_text
from walstream.formats.debezium.names import schema_name, topic
from walstream.formats.debezium.options import DebeziumOptions
from walstream.lsn import show
from walstream.op import Kind, ReplicationOp
from walstream.row import NotSent, Row

_TRUNCATE: Final = Kind.TRUNCATE  # an enum's members are slow to look up
NEW_KEY: Final = "__debezium.newkey"
OLD_KEY: Final = "__debezium.oldkey"


class DebeziumKey:
    """Writes the keys of one table.

    `indexes` are its key columns, in the table's order; none: keys are null.
    """

    def __init__(
        self, columns: TableColumns, options: DebeziumOptions, indexes: Sequence[int]
    ) -> None:
        self._columns = columns
        table = columns.table
        lacking = [table.columns[i] for i in indexes if i not in columns.types]
        if lacking:
            raise HistoryError(
                f"column {lacking[0]!r} of the key of table {table.full_name!r} has a "
                "type without a form",
                hint="name other columns in partition_key, or set unknown = true in "
                "the sink's debezium table; then: walstream run",
            )
        self.indexes = tuple(indexes)
        self._parts = [
            (
                index,
                f"{json_text(columns.key_fields[index][0])}:",
                columns.types[index].render,
            )
            for index in indexes
        ]
        self._before, self._behind = "{", "}"
        prefix = topic(options.name, table.schema, table.name)
        fields = tuple(columns.key_fields[index] for index in indexes)
        name = schema_name(f"{prefix}.Key", options.adjust)
        self.schema = Schema("struct", name=name, fields=fields)
        if options.schemas:
            self._before = f'{{"schema":{self.schema.json()},"payload":{{'
            self._behind = "}}"

    def render(self, op: ReplicationOp) -> bytes | None:
        """Write the key of an op's record: of its new row, or of a deleted one."""
        if not self.indexes or op.kind is _TRUNCATE:
            return None
        fields = self._fields(op, op.new or op.old or ())
        return f"{self._before}{fields}{self._behind}".encode()

    def change_headers(
        self, update: ReplicationOp
    ) -> tuple[tuple[str, bytes], tuple[str, bytes]]:
        """Return the headers of the two records that an update of a key becomes.

        The first is of the Delete and of its tombstone, the second of the Insert.
        """
        new = f"{{{self._fields(update, update.new or ())}}}"
        old = f"{{{self._fields(update, update.old or ())}}}"
        return (NEW_KEY, new.encode()), (OLD_KEY, old.encode())

    def _fields(self, op: ReplicationOp, row: Row) -> str:
        parts = []
        values = cast("Sequence[Any]", row)
        for index, name, render in self._parts:
            value = values[index]
            if value is None:
                parts.append(f"{name}null")
                continue
            if isinstance(value, NotSent):
                raise self.unsent(op, index)
            try:
                parts.append(name + render(value))
            except UNREADABLE:
                raise self._columns.refused(op, row) from None
        return parts[0] if len(parts) == 1 else ",".join(parts)

    def unsent(self, op: ReplicationOp, index: int) -> HistoryError:
        """Return what is raised where a column of the key was not sent."""
        table = self._columns.table
        return HistoryError(
            f"table {table.full_name!r}, {op.kind.value.lower()} at ({show(op.lsn)}, "
            f"{op.seq_id}): column {table.columns[index]!r} of its key was not sent",
            hint="set REPLICA IDENTITY FULL on the table for later ops, then start "
            "again with a backfill",
        )
