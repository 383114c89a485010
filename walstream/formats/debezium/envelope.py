"""The format `debezium`: the envelope of one change, as Debezium 3.5 writes it.

    {"before":null,"after":{"id":1},"source":{…},"transaction":null,"op":"c","ts_ms":…}

An encoder is of one table; a transaction's head is rendered once. What differs from
Debezium's own records on purpose is in the docs, in one table.
"""

from typing import ClassVar, Final

from walstream.formats.debezium.columns import TableColumns
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.names import schema_name, topic
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.sink_turn import SinkTurn
from walstream.formats.debezium.source_block import (
    OP,
    SOURCE,
    TIMES,
    TRANSACTION,
    SourceBlock,
)
from walstream.op import Kind, ReplicationOp, Table

BACKFILL: Final = "true"
BESIDE: Final = "incremental"
_INSERT: Final = Kind.INSERT  # an enum's members are slow to look up
_UPDATE: Final = Kind.UPDATE
_DELETE: Final = Kind.DELETE
_NO_TIME: Final = -(1 << 62)


class EnvelopeEncoder:
    """Encodes the ops of one table."""

    truncates: ClassVar = True

    def __init__(
        self,
        table: Table,
        options: DebeziumOptions,
        turn: SinkTurn,
        snapshot: str = BESIDE,
    ) -> None:
        """`snapshot` says of rows that are no change how they were read."""
        self.columns = TableColumns(table, options)
        self.texts = self.columns.texts
        self._turn = turn
        self._name = table.full_name
        self._block = options.transaction_block
        self._source = SourceBlock(options, table.schema, table.name, snapshot)
        self._whole = snapshot == BACKFILL
        prefix = topic(options.name, table.schema, table.name)
        self.schema = envelope(prefix, self.columns, options)
        self._open = '{"before":'
        self._close = ""
        if options.schemas:
            self._open = f'{{"schema":{self.schema.json()},"payload":{{"before":'
            self._close = "}"
        self._time = _NO_TIME
        self._lsn = -1
        self._head = self._second = self._third = self._xmin = ""

    def encode(self, op: ReplicationOp) -> bytes:
        """Write one op of this encoder's table."""
        kind = op.kind
        old, new = "null", "null"
        if op.old is not None:
            old = self.columns.write(op, op.old)
        if op.new is not None:
            new = self.columns.write(op, op.new)
        if op.snapshot:
            return self._snapshot(op, new)
        if op.lsn != self._lsn or op.commit_time != self._time:
            self._begin(op)
        lsn = str(op.row_lsn)
        third = self._transaction(op, lsn) if self._block else self._third
        letter = (
            "c"
            if kind is _INSERT
            else "u"
            if kind is _UPDATE
            else "d"
            if kind is _DELETE
            else "t"
        )
        return (
            f'{self._open}{old},"after":{new}{self._head}{lsn}{self._second}{lsn}'
            f'{third}{letter}",{self._turn.ending}{self._close}'
        ).encode()

    def values(self, op: ReplicationOp) -> list[bytes | None]:
        """Return the values of an op's records, in order: None is a tombstone."""
        value = self.encode(op)
        return [value, None] if op.kind is _DELETE else [value]

    def _begin(self, op: ReplicationOp) -> None:
        self._lsn, self._time = op.lsn, op.commit_time
        first, second = self._source.stream(op.commit_time, op.lsn, op.xid)
        self._head = f',"source":{first}'
        self._second = second
        self._xmin = f',"xmin":null,{self._turn.origin}}},"transaction":'
        self._third = f'{self._xmin}null,"op":"'

    def _transaction(self, op: ReplicationOp, lsn: str) -> str:
        """Return what stands behind a row's LSN, with the transaction's block."""
        order = self._turn.order(self._name, op.lsn, op.seq_id)
        return (
            f'{self._xmin}{{"id":"{op.xid}:{lsn}","total_order":{op.seq_id + 1},'
            f'"data_collection_order":{order}}},"op":"'
        )

    def _snapshot(self, op: ReplicationOp, new: str) -> bytes:
        letter = "r" if op.kind is _INSERT else "t"
        source = self._source.snapshot(op.commit_time, op.lsn, whole=self._whole)
        return (
            f'{self._open}null,"after":{new},"source":{source}'
            f'"origin":null,"origin_lsn":null}},"transaction":null,"op":"{letter}",'
            f"{self._turn.ending}{self._close}"
        ).encode()


def envelope(prefix: str, columns: TableColumns, options: DebeziumOptions) -> Schema:
    """Return the schema of a table's envelope."""
    row = columns.schema(schema_name(f"{prefix}.Value", options.adjust)).as_optional()
    return Schema(
        "struct",
        name=schema_name(f"{prefix}.Envelope", options.adjust),
        version=2,
        fields=(
            ("before", row),
            ("after", row),
            ("source", SOURCE),
            ("transaction", TRANSACTION),
            ("op", OP),
            *TIMES,
        ),
    )
