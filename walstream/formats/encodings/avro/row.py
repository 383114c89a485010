"""The unwrapped row in Avro: what `UnwrappedEncoder` writes in JSON."""

from walstream.formats.debezium.connect import text
from walstream.formats.debezium.envelope import BESIDE
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.row import UnwrappedEncoder
from walstream.formats.debezium.sink_turn import SinkTurn
from walstream.formats.encodings.avro import tree
from walstream.formats.encodings.avro.columns import AvroColumns
from walstream.formats.encodings.avro.schema_text import avro_schema
from walstream.op import Kind, ReplicationOp, Table


class AvroRow(UnwrappedEncoder):
    """Encodes the ops of one table."""

    def __init__(
        self,
        table: Table,
        options: DebeziumOptions,
        turn: SinkTurn,
        snapshot: str = BESIDE,
    ) -> None:
        """`snapshot` says of rows that are no change how they were read."""
        super().__init__(table, options, turn, snapshot)
        self.rows = AvroColumns(self.columns)
        self.schema_text = avro_schema(self.schema)
        self.head = b""
        """What stands before each record: the id that a registry gives to the text."""
        flag = text().as_optional()
        self._stays = tree.value_bytes(flag, "false")
        self._goes = tree.value_bytes(flag, "true")

    def encode(self, op: ReplicationOp) -> bytes:
        """Write the row of one op: the old one of a Delete."""
        is_delete = op.kind is Kind.DELETE
        row = op.old if is_delete else op.new
        parts = [self.head, self.rows.write(op, row or ())]
        if self._rewrites:
            parts.append(self._goes if is_delete else self._stays)
        for _, schema, write in self._added:
            parts.append(tree.document(schema, write(op)))
        return b"".join(parts)
