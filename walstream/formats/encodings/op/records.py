"""Records of a table in the format `op`, whatever they are encoded in."""

from typing import ClassVar

from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.position import Headers, PositionHeaders
from walstream.formats.encodings.op.columns import OpColumns
from walstream.formats.encodings.op.schema import op_schema
from walstream.op import ReplicationOp, Table


class OpRecords:
    """Encoder of one table; its parts carry a schema's id, once it is `set`."""

    truncates: ClassVar = True

    def __init__(self, table: Table, options: DebeziumOptions) -> None:
        self._options = options
        self._columns = OpColumns(table, options)
        self.schema = op_schema(self._columns, options)
        self.head = b""
        """What stands before each record: the id that a registry gives to the text."""
        self.texts: frozenset[int] = frozenset()
        """Nothing can be put into a record afterwards."""
        self._headers = PositionHeaders(options, unwrapped=True)

    def encode(self, op: ReplicationOp) -> bytes:
        """Write one op of this encoder's table."""
        raise NotImplementedError

    def values(self, op: ReplicationOp) -> list[bytes | None]:
        """Return the value of an op's record; its tombstone is the sink's."""
        return [self.encode(op)]

    def headers(self, op: ReplicationOp) -> Headers:
        """Return the header that names an op: who has no schema reads no field."""
        return self._headers.of(op)
