"""The envelope of one change in Avro: what `EnvelopeEncoder` writes in JSON."""

from typing import Final

from walstream.formats.debezium.envelope import BACKFILL, BESIDE, EnvelopeEncoder
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.sink_turn import SinkTurn
from walstream.formats.encodings.avro.columns import AvroColumns
from walstream.formats.encodings.avro.primitive import NULL, VALUE, long, text
from walstream.formats.encodings.avro.schema_text import avro_schema
from walstream.formats.encodings.avro.source_block import AvroSource, origin
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import Row

_INSERT: Final = Kind.INSERT  # an enum's members are slow to look up
_UPDATE: Final = Kind.UPDATE
_DELETE: Final = Kind.DELETE
_CREATED: Final = text("c")
_CHANGED: Final = text("u")
_DELETED: Final = text("d")
_TRUNCATED: Final = text("t")
_FOUND: Final = text("r")
_NO_TIME: Final = -(1 << 62)


class AvroEnvelope(EnvelopeEncoder):
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
        self._clock = turn
        self._number = options.transaction_block
        self._full_name = table.full_name
        self._complete = snapshot == BACKFILL
        self._block_of = AvroSource(options, table.schema, table.name, snapshot)
        self._of_time = _NO_TIME
        self._of_lsn = -1
        self._first = self._middle = self._last = b""
        self._sequence = b""
        self._nanoseconds = -1
        self._ending = b""

    def encode(self, op: ReplicationOp) -> bytes:
        """Write one op of this encoder's table."""
        kind = op.kind
        parts = [self.head]
        self._put_row(op, op.old, parts)
        self._put_row(op, op.new, parts)
        if self._clock.nanoseconds != self._nanoseconds:
            self._set_clock(self._clock.nanoseconds)
        if op.snapshot:
            letter = _FOUND if kind is _INSERT else _TRUNCATED
            source = self._block_of.snapshot(
                op.commit_time, op.lsn, whole=self._complete
            )
            parts += [source, NULL, letter, self._ending]
            return b"".join(parts)
        if op.lsn != self._of_lsn or op.commit_time != self._of_time:
            self._start(op)
        letter = (
            _CREATED
            if kind is _INSERT
            else _CHANGED
            if kind is _UPDATE
            else _DELETED
            if kind is _DELETE
            else _TRUNCATED
        )
        lsn = str(op.row_lsn).encode()
        parts += [
            self._first,
            long(len(self._sequence) + len(lsn) + 2),
            self._sequence,
            lsn,
            self._middle,
            long(op.row_lsn),
            self._last,
            self._place(op) if self._number else NULL,
            letter,
            self._ending,
        ]
        return b"".join(parts)

    def _put_row(self, op: ReplicationOp, row: Row | None, parts: list[bytes]) -> None:
        if row is None:
            parts.append(NULL)
        else:
            parts.append(VALUE)
            self.rows.put(op, row, parts)

    def _start(self, op: ReplicationOp) -> None:
        """Render what the rows of a transaction share."""
        self._of_lsn, self._of_time = op.lsn, op.commit_time
        self._first, middle = self._block_of.stream(op.commit_time, op.xid)
        self._middle = b'"]' + middle  # behind the sequence's second LSN
        self._sequence = f'["{op.lsn}","'.encode()
        turn = self._clock
        self._last = NULL + origin(turn.origin_name, turn.origin_lsn)

    def _place(self, op: ReplicationOp) -> bytes:
        """Return the block of a transaction."""
        order = self._clock.order(self._full_name, op.lsn, op.seq_id)
        name = text(f"{op.xid}:{op.row_lsn}")
        return VALUE + name + long(op.seq_id + 1) + long(order)

    def _set_clock(self, nanoseconds: int) -> None:
        self._nanoseconds = nanoseconds
        times = (nanoseconds // 1_000_000, nanoseconds // 1000, nanoseconds)
        self._ending = b"".join([VALUE + long(time) for time in times])
