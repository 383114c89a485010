"""Keys of records in protobuf; headers have them in JSON, as Connect writes those."""

from collections.abc import Sequence
from typing import Any, Final, cast

from walstream.errors import WalstreamError
from walstream.formats.debezium.columns import UNREADABLE, TableColumns
from walstream.formats.debezium.key import DebeziumKey
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.encodings.protobuf.plan import FieldPlan, StructPlan
from walstream.formats.encodings.protobuf.schema_reader import parsed_proto
from walstream.formats.encodings.protobuf.shape import proto_shape
from walstream.formats.encodings.protobuf.writers import Write, writer
from walstream.op import Kind, ReplicationOp
from walstream.row import NotSent

_TRUNCATE: Final = Kind.TRUNCATE


class ProtoKey(DebeziumKey):
    """Writes the keys of one table: of the columns at `indexes`, or none."""

    def __init__(
        self, columns: TableColumns, options: DebeziumOptions, indexes: Sequence[int]
    ) -> None:
        super().__init__(columns, options, indexes)
        self.schema_text = proto_shape(self.schema).text()
        self.head = b""
        """What stands before each key: the id that a registry gives to the text."""
        self._registered = ""
        self._columns_of = columns
        self._fields_of: list[tuple[int, FieldPlan, Write]] = []
        self._writers: dict[int, Write] = {}

    def use(self, registered: str) -> None:
        """Write keys by this text, which the registry has."""
        if registered == self._registered:
            return
        message = parsed_proto(registered).first
        scope = [message]
        names = {self._columns_of.key_fields[one][0]: one for one in self.indexes}
        fields = []
        for plan in StructPlan(self.schema, message, []).fields:
            index = names[plan.name]
            found = self._columns_of.types[index]
            write = writer(found, message.live[plan.name].type, scope)
            fields.append((index, plan, write))
        self._fields_of = fields
        self._writers = {index: write for index, _, write in fields}
        self._registered = registered

    def render(self, op: ReplicationOp) -> bytes | None:
        """Write the key of an op's record: of its new row, or of a deleted one."""
        if not self.indexes or op.kind is _TRUNCATE:
            return None
        if not self._registered:
            raise WalstreamError("keys in protobuf without numbers: a defect")
        row = op.new or op.old or ()
        parts = [self.head]
        values = cast("Sequence[Any]", row)
        for index, plan, write in self._fields_of:
            value = values[index]
            written: bytes | None = None
            if isinstance(value, NotSent):
                raise self.unsent(op, index)
            if value is not None:
                try:
                    written = write(value)
                except UNREADABLE:
                    raise self._columns_of.refused(op, row, self._every()) from None
            if written is not None:
                parts.append(plan.of(written))
            elif not plan.optional:
                raise self._columns_of.refused(op, row, self._every())
        return b"".join(parts)

    def _every(self) -> dict[int, Any]:
        """Return what writes each column: those of keys, and JSON of the others."""
        every: dict[int, Any] = {
            index: found.render for index, found in self._columns_of.types.items()
        }
        return {**every, **self._writers}
