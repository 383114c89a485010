"""The format `op` in Avro: what `OpEncoder` writes in JSON, with types."""

from collections.abc import Sequence
from typing import Final

from walstream.errors import WalstreamError
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.encodings.avro.columns import AvroColumns
from walstream.formats.encodings.avro.key import AvroKey
from walstream.formats.encodings.avro.primitive import (
    END,
    FALSE,
    NULL,
    TRUE,
    VALUE,
    long,
    text,
)
from walstream.formats.encodings.avro.schema_text import avro_schema
from walstream.formats.encodings.avro.tree import block
from walstream.formats.encodings.op.columns import OpColumns, known
from walstream.formats.encodings.op.records import OpRecords
from walstream.formats.encodings.subject import Framed
from walstream.lsn import Lsn
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import Row

_INSERT: Final = Kind.INSERT  # an enum's members are slow to look up
_UPDATE: Final = Kind.UPDATE
_DELETE: Final = Kind.DELETE
_INSERTED: Final = text("Insert")
_UPDATED: Final = text("Update")
_DELETED: Final = text("Delete")
_TRUNCATED: Final = text("Truncate")
_PLAIN: Final = FALSE + NULL + NULL + NULL
"""The fields behind the rows, of most ops."""
_SIGN: Final = 63  # the bit of a long that an LSN does not reach


class AvroOp(OpRecords):
    """Encodes the ops of one table."""

    def __init__(self, table: Table, options: DebeziumOptions) -> None:
        super().__init__(table, options)
        self.rows = AvroColumns(self._columns)
        self.schema_text = avro_schema(self.schema)
        self._doubtful = bool(self._columns.doubts)
        self._named = text(table.name) + text(table.schema)
        self._lsn: Lsn = -1
        self._begin = b""  # of a transaction's ops
        self._key: AvroKey | None = None  # with its schema: not made for each op

    def encode(self, op: ReplicationOp) -> bytes:
        """Write one op of this encoder's table."""
        kind, old, new = op.kind, op.old, op.new
        if op.lsn != self._lsn:
            self._start(op.lsn)
        rare = op.absent or op.snapshot
        if self._doubtful:
            rare = rare or self._columns.have_texts(old, new)
        word = (
            _INSERTED
            if kind is _INSERT
            else _UPDATED
            if kind is _UPDATE
            else _DELETED
            if kind is _DELETE
            else _TRUNCATED
        )
        parts = [self.head, self._begin, long(op.seq_id), word]
        for row in (old, new):
            if row is None:
                parts.append(NULL)
            else:
                parts.append(VALUE)
                self.rows.put(op, known(op, row) if op.absent else row, parts)
        if rare or word is _TRUNCATED:
            parts.append(self._rest(op))
        else:
            parts.append(_PLAIN)
        return b"".join(parts)

    def key(self, indexes: Sequence[int]) -> AvroKey:
        """Return what writes the keys, of these columns: once made, the same."""
        wanted = tuple(indexes)
        if self._key is None or self._key.indexes != wanted:
            self._key = AvroKey(self.rows, self._options, wanted)
        return self._key

    def framed(self, key: Sequence[int]) -> list[tuple[bool, Framed]]:
        """Return what writes values and keys of these columns, keys with True."""
        parts: list[tuple[bool, Framed]] = [(False, self)]
        if key:
            parts.append((True, self.key(key)))
        return parts

    def _start(self, lsn: Lsn) -> None:
        if lsn >> _SIGN:
            raise WalstreamError(f"an LSN of more than {_SIGN} bits: {lsn}")
        self._lsn = lsn
        self._begin = self._named + long(lsn)

    def _rest(self, op: ReplicationOp) -> bytes:
        """Return the fields behind the rows."""
        columns, old, new = self._columns, op.old, op.new
        absent = texts = NULL
        if op.absent:
            absent = _halves(_names(columns, old), _names(columns, new))
        if self._doubtful:
            texts = _halves(_texts(columns, old), _texts(columns, new))
        partitions = NULL
        if op.kind is Kind.TRUNCATE:
            partitions = VALUE + long(op.partitions)
        return b"".join([TRUE if op.snapshot else FALSE, absent, texts, partitions])


def _halves(old: bytes, new: bytes) -> bytes:
    """Return a record of both, or null where neither has anything."""
    if old == END and new == END:
        return NULL
    parts = [VALUE]
    for half in (old, new):
        parts += [NULL] if half == END else [VALUE, half]
    return b"".join(parts)


def _names(columns: OpColumns, row: Row | None) -> bytes:
    return block([text(name) for name in columns.absent_of(row)])


def _texts(columns: OpColumns, row: Row | None) -> bytes:
    found = columns.texts_of(row)
    return block([text(name) + text(one) for name, one in found.items()])
