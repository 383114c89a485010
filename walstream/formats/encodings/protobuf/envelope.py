"""The envelope of one change in protobuf: what `EnvelopeEncoder` writes in JSON."""

from typing import Final

from walstream.errors import WalstreamError
from walstream.formats.debezium.envelope import BACKFILL, BESIDE, EnvelopeEncoder
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.sink_turn import SinkTurn
from walstream.formats.debezium.source_block import TRANSACTION
from walstream.formats.encodings.protobuf import primitive
from walstream.formats.encodings.protobuf.columns import ProtoColumns
from walstream.formats.encodings.protobuf.message import ProtoMessage
from walstream.formats.encodings.protobuf.plan import StructPlan, resolve
from walstream.formats.encodings.protobuf.primitive import LENGTH, text, varint
from walstream.formats.encodings.protobuf.schema_reader import parsed_proto
from walstream.formats.encodings.protobuf.shape import proto_shape
from walstream.formats.encodings.protobuf.source_block import ProtoSource
from walstream.op import Kind, ReplicationOp, Table

_INSERT: Final = Kind.INSERT  # an enum's members are slow to look up
_UPDATE: Final = Kind.UPDATE
_DELETE: Final = Kind.DELETE
_CREATED: Final = text("c")
_CHANGED: Final = text("u")
_DELETED: Final = text("d")
_TRUNCATED: Final = text("t")
_FOUND: Final = text("r")
_NO_TIME: Final = -(1 << 62)
_TIMES: Final = ("ts_ms", "ts_us", "ts_ns")
_FIELDS: Final = ("before", "after", "source", "transaction", "op", *_TIMES)


class ProtoEnvelope(EnvelopeEncoder):
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
        self._clock = turn
        self._told = options
        self._number = options.transaction_block
        self._full_name = table.full_name
        self._names = table.schema, table.name
        self._read = snapshot
        self._complete = snapshot == BACKFILL
        self._of_time = _NO_TIME
        self._of_lsn = -1
        self._nanoseconds = -1
        self._ending = b""
        self._times: list[bytes] = []
        self._tags: dict[str, bytes] = {}
        self._order: list[int] = []
        self._in_order = True
        self._rows: ProtoColumns | None = None
        self._block_of: ProtoSource | None = None
        self._transactions: StructPlan | None = None

    @property
    def rows(self) -> ProtoColumns:
        """What writes rows."""
        if self._rows is None:
            raise WalstreamError("records in protobuf without numbers: a defect")
        return self._rows

    def use(self, registered: str) -> None:
        """Write records by this text, which the registry has."""
        if registered == self._registered:
            return
        message = parsed_proto(registered).first
        scope = [message]
        fields = message.live
        rows = resolve(fields["after"].type, scope)
        self._rows = ProtoColumns(self.columns, rows, scope)
        source = resolve(fields["source"].type, scope)
        self._block_of = ProtoSource(self._told, self._names, self._read, source)
        transactions = resolve(fields["transaction"].type, scope)
        self._transactions = StructPlan(TRANSACTION, transactions, scope)
        self._use_fields(message)
        self._of_lsn, self._of_time = -1, _NO_TIME
        self._nanoseconds = -1
        self._registered = registered

    def _use_fields(self, message: ProtoMessage) -> None:
        fields = message.live
        numbers = [fields[name].number for name in _FIELDS]
        self._order = sorted(range(len(_FIELDS)), key=lambda place: numbers[place])
        self._in_order = self._order == list(range(len(_FIELDS)))
        self._tags = {
            name: primitive.tag(fields[name].number, 0 if name in _TIMES else LENGTH)
            for name in _FIELDS
        }

    def encode(self, op: ReplicationOp) -> bytes:
        """Write one op of this encoder's table."""
        kind = op.kind
        block = self._block_of
        if block is None:
            raise WalstreamError("records in protobuf without numbers: a defect")
        tags = self._tags
        old = new = transaction = b""
        if op.old is not None:
            old = tags["before"] + primitive.raw(self.rows.write(op, op.old))
        if op.new is not None:
            new = tags["after"] + primitive.raw(self.rows.write(op, op.new))
        if self._clock.nanoseconds != self._nanoseconds:
            self._set_clock(self._clock.nanoseconds)
        if op.snapshot:
            letter = _FOUND if kind is _INSERT else _TRUNCATED
            source = block.snapshot(op.commit_time, op.lsn, whole=self._complete)
            old = b""
        else:
            if op.lsn != self._of_lsn or op.commit_time != self._of_time:
                self._start(op, block)
            letter = (
                _CREATED
                if kind is _INSERT
                else _CHANGED
                if kind is _UPDATE
                else _DELETED
                if kind is _DELETE
                else _TRUNCATED
            )
            source = block.row(op.row_lsn)
            if self._number:
                transaction = tags["transaction"] + self._place(op)
        source = tags["source"] + primitive.raw(source)
        letter = tags["op"] + letter
        if self._in_order:
            parts = [self.head, old, new, source, transaction, letter, self._ending]
            return b"".join(parts)
        every = [old, new, source, transaction, letter, *self._times]
        return self.head + b"".join([every[place] for place in self._order])

    def _start(self, op: ReplicationOp, block: ProtoSource) -> None:
        """Render what the rows of a transaction share."""
        self._of_lsn, self._of_time = op.lsn, op.commit_time
        turn = self._clock
        origin = turn.origin_name, turn.origin_lsn
        block.start((op.commit_time, op.lsn), op.xid, origin)

    def _place(self, op: ReplicationOp) -> bytes:
        """Return the block of a transaction, behind its length."""
        plan = self._transactions
        if plan is None:
            raise WalstreamError("records in protobuf without numbers: a defect")
        order = self._clock.order(self._full_name, op.lsn, op.seq_id)
        told = {
            "id": f"{op.xid}:{op.row_lsn}",
            "total_order": op.seq_id + 1,
            "data_collection_order": order,
        }
        return primitive.raw(plan.body(told))

    def _set_clock(self, nanoseconds: int) -> None:
        self._nanoseconds = nanoseconds
        times = (nanoseconds // 1_000_000, nanoseconds // 1000, nanoseconds)
        self._times = [
            self._tags[name] + varint(time)
            for name, time in zip(_TIMES, times, strict=True)
        ]
        self._ending = b"".join(self._times)
