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
        self._first = self._sequence = self._middle = self._last = b""
        self._digits = 0  # of a row's LSN
        self._opening = b""  # of a source, up to an LSN of so many
        self._nanoseconds = -1
        self._times = b""
        self._letter = b""
        self._ending = b""  # a letter, and the times

    def encode(self, op: ReplicationOp) -> bytes:
        """Write one op of this encoder's table."""
        kind = op.kind
        parts = [self.head]
        if op.old is None:
            parts.append(NULL)
        else:
            parts.append(VALUE)
            self.rows.put(op, op.old, parts)
        if op.new is None:
            parts.append(NULL)
        else:
            parts.append(VALUE)
            self.rows.put(op, op.new, parts)
        if op.snapshot:
            letter = _FOUND if kind is _INSERT else _TRUNCATED
            source = self._block_of.snapshot(
                op.commit_time, op.lsn, whole=self._complete
            )
            parts += [source, NULL, self._end(letter)]
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
        if len(lsn) != self._digits:
            self._set_opening(len(lsn))
        parts.append(self._opening)
        parts.append(lsn)
        parts.append(self._middle)
        parts.append(long(op.row_lsn))
        parts.append(self._last)
        if self._number:
            parts.append(self._place(op))
        parts.append(self._end(letter))
        return b"".join(parts)

    def _start(self, op: ReplicationOp) -> None:
        """Render what the rows of a transaction share."""
        self._of_lsn, self._of_time = op.lsn, op.commit_time
        self._first, middle = self._block_of.stream(op.commit_time, op.xid)
        self._sequence = f'["{op.lsn}","'.encode()
        self._set_opening(self._digits)
        self._middle = b'"]' + middle  # behind the sequence's second LSN
        turn = self._clock
        self._last = NULL + origin(turn.origin_name, turn.origin_lsn)
        if not self._number:
            self._last += NULL

    def _set_opening(self, digits: int) -> None:
        self._digits = digits
        length = len(self._sequence) + digits + len(b'"]')
        self._opening = self._first + long(length) + self._sequence

    def _place(self, op: ReplicationOp) -> bytes:
        """Return the block of a transaction."""
        order = self._clock.order(self._full_name, op.lsn, op.seq_id)
        name = text(f"{op.xid}:{op.row_lsn}")
        return VALUE + name + long(op.seq_id + 1) + long(order)

    def _end(self, letter: bytes) -> bytes:
        """Return an op's letter, and the time of processing."""
        nanoseconds = self._clock.nanoseconds
        if nanoseconds != self._nanoseconds:
            self._nanoseconds = nanoseconds
            times = (nanoseconds // 1_000_000, nanoseconds // 1000, nanoseconds)
            self._times = b"".join([VALUE + long(time) for time in times])
            self._letter = b""
        if letter is not self._letter:
            self._letter = letter
            self._ending = letter + self._times
        return self._ending
