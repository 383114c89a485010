"""Keys of records in Avro; headers have them in JSON, as Connect writes those."""

from collections.abc import Sequence
from typing import Any, Final

from walstream.formats.debezium.columns import UNREADABLE
from walstream.formats.debezium.key import DebeziumKey
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.encodings.avro.columns import AvroColumns, AvroField
from walstream.formats.encodings.avro.schema_text import avro_schema
from walstream.op import Kind, ReplicationOp
from walstream.row import NotSent

_TRUNCATE: Final = Kind.TRUNCATE


class AvroKey(DebeziumKey):
    """Writes the keys of one table: of the columns at `indexes`, or none."""

    def __init__(
        self, rows: AvroColumns, options: DebeziumOptions, indexes: Sequence[int]
    ) -> None:
        super().__init__(rows.columns, options, indexes)
        self.schema_text = avro_schema(self.schema)
        self.head = b""
        """What stands before each key: the id that a registry gives to the text."""
        self._rows = rows
        self._places = list(indexes)
        self._written = [
            AvroField(
                rows.columns.types[index],
                rows.columns.key_fields[index][1],
                rows.writers[index],
            )
            for index in indexes
        ]

    def render(self, op: ReplicationOp) -> bytes | None:
        """Write the key of an op's record: of its new row, or of a deleted one."""
        if not self.indexes or op.kind is _TRUNCATE:
            return None
        row = op.new or op.old or ()
        parts = [self.head]
        # a list is looked at without calls
        values: list[Any] = row if isinstance(row, list) else list(row)
        for place, index in enumerate(self._places):
            field, value = self._written[place], values[index]
            if isinstance(value, NotSent):
                raise self.unsent(op, index)
            try:
                is_there = field.put(value, parts)
            except UNREADABLE:
                raise self._rows.refused(op, row) from None
            if not (is_there or field.null):
                raise self._rows.refused(op, row)
        return b"".join(parts)
