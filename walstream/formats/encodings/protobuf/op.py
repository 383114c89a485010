"""The format `op` in protobuf: its fields have numbers once they are registered."""

from collections.abc import Sequence

from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.encodings.op.documents import OpDocuments
from walstream.formats.encodings.protobuf.document import ProtoDocument
from walstream.formats.encodings.protobuf.key import ProtoKey
from walstream.formats.encodings.subject import Framed
from walstream.op import ReplicationOp, Table


class ProtoOp(OpDocuments):
    """Encodes the ops of one table."""

    def __init__(self, table: Table, options: DebeziumOptions) -> None:
        super().__init__(table, options)
        self._writer = ProtoDocument(self.schema)
        self.schema_text = self._writer.schema_text
        self._key: ProtoKey | None = None  # with its schema: not made for each op

    def use(self, registered: str) -> None:
        """Write records by this text, which the registry has."""
        self._writer.use(registered)

    def encode(self, op: ReplicationOp) -> bytes:
        """Write one op of this encoder's table."""
        return self.head + self._writer.write(self.document(op))

    def key(self, indexes: Sequence[int]) -> ProtoKey:
        """Return what writes the keys, of these columns: once made, the same."""
        wanted = tuple(indexes)
        if self._key is None or self._key.indexes != wanted:
            self._key = ProtoKey(self._columns, self._options, wanted)
        return self._key

    def framed(self, key: Sequence[int]) -> list[tuple[bool, Framed]]:
        """Return what writes values and keys of these columns, keys with True."""
        parts: list[tuple[bool, Framed]] = [(False, self)]
        if key:
            parts.append((True, self.key(key)))
        return parts
