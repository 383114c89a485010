"""Ops as the JSON of their schema's tree, of which some encodings make their bytes."""

from dataclasses import replace
from typing import Final

import orjson

from walstream.formats.debezium.json_text import json_text
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.encodings.op.columns import known
from walstream.formats.encodings.op.records import OpRecords
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import Row

_NULL: Final = "null"
_TRUNCATE: Final = Kind.TRUNCATE  # an enum's members are slow to look up


class OpDocuments(OpRecords):
    """Encoder of one table that writes JSON first."""

    def __init__(self, table: Table, options: DebeziumOptions) -> None:
        super().__init__(table, options)
        self._begin = (
            f'{{"table_name":{json_text(table.name)},"schema":{json_text(table.schema)}'
        )

    def document(self, op: ReplicationOp) -> bytes:
        """Write an op as JSON."""
        columns, old, new = self._columns, op.old, op.new
        absent = texts = _NULL
        if op.absent:
            absent = _halves(columns.absent_of(old), columns.absent_of(new))
        if columns.have_texts(old, new):
            texts = _halves(columns.texts_of(old), columns.texts_of(new))
        partitions = str(op.partitions) if op.kind is _TRUNCATE else _NULL
        snapshot = "true" if op.snapshot else "false"
        return (
            f'{self._begin},"lsn":{op.lsn},"seq_id":{op.seq_id},'
            f'"kind":"{op.kind.value}","old":{self._row(op, old)},'
            f'"new":{self._row(op, new)},"snapshot":{snapshot},'
            f'"absent":{absent},"texts":{texts},"partitions":{partitions}}}'
        ).encode()

    def _row(self, op: ReplicationOp, row: Row | None) -> str:
        if row is None:
            return _NULL
        if not op.absent:
            return self._columns.write(op, row)
        return self._columns.write(replace(op, absent=False), known(op, row))


def _halves(old: object, new: object) -> str:
    """Return both as an object, or null where neither has anything."""
    if not old and not new:
        return _NULL
    return orjson.dumps({"old": old or None, "new": new or None}).decode()
