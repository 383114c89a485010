"""The unwrapped row in protobuf: what `UnwrappedEncoder` writes in JSON."""

from bisect import bisect
from collections.abc import Callable

import orjson

from walstream.errors import WalstreamError
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.envelope import BESIDE
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.row import DELETED, UnwrappedEncoder
from walstream.formats.debezium.sink_turn import SinkTurn
from walstream.formats.encodings.protobuf.columns import ProtoColumns
from walstream.formats.encodings.protobuf.plan import FieldPlan, StructPlan
from walstream.formats.encodings.protobuf.schema_reader import parsed_proto
from walstream.formats.encodings.protobuf.shape import proto_shape
from walstream.op import Kind, ReplicationOp, Table


class ProtoRow(UnwrappedEncoder):
    """Encodes the ops of one table, once its fields have numbers."""

    def __init__(
        self,
        table: Table,
        options: DebeziumOptions,
        turn: SinkTurn,
        snapshot: str = BESIDE,
    ) -> None:
        """`snapshot` says of rows that are no change how they were read."""
        super().__init__(table, options, turn, snapshot)
        self.schema_text = proto_shape(self.schema).text()
        self.head = b""
        """What stands before each record: the id that a registry gives to the text."""
        self._registered = ""
        self._rows: ProtoColumns | None = None
        self._insertions: list[tuple[int, Callable[[ReplicationOp], bytes]]] = []

    @property
    def rows(self) -> ProtoColumns:
        """What writes the columns."""
        if self._rows is None:
            raise WalstreamError("records in protobuf without numbers: a defect")
        return self._rows

    def use(self, registered: str) -> None:
        """Write records by this text, which the registry has."""
        if registered == self._registered:
            return
        message = parsed_proto(registered).first
        rows = ProtoColumns(self.columns, message, [])
        added = [(name, schema) for name, schema, _ in self._added]
        writes = {name: _as_json(write) for name, _, write in self._added}
        if self._rewrites:
            added.append((DELETED, dict(self.schema.fields)[DELETED]))
            writes[DELETED] = _is_deleted
        told = Schema("struct", fields=tuple(added))
        plans = StructPlan(told, message, []).fields  # in the order of their numbers
        numbers = list(rows.numbers())
        insertions = [
            (bisect(numbers, plan.number), _field(plan, writes[plan.name]))
            for plan in plans
        ]
        insertions.reverse()  # one moves those behind it
        self._rows, self._insertions = rows, insertions
        self._registered = registered

    def encode(self, op: ReplicationOp) -> bytes:
        """Write the row of one op: the old one of a Delete."""
        row = op.old if op.kind is Kind.DELETE else op.new
        parts = self.rows.parts(op, row or ())
        for place, write in self._insertions:
            parts.insert(place, write(op))
        return self.head + b"".join(parts)


def _as_json(
    write: Callable[[ReplicationOp], str],
) -> Callable[[ReplicationOp], object]:
    return lambda op: orjson.loads(write(op))


def _is_deleted(op: ReplicationOp) -> object:
    return "true" if op.kind is Kind.DELETE else "false"


def _field(
    plan: FieldPlan, value: Callable[[ReplicationOp], object]
) -> Callable[[ReplicationOp], bytes]:
    return lambda op: plan.write(value(op))
