"""The format `debezium_row`: the row alone, as ExtractNewRecordState unwraps it.

    {"id":3,"v":"n","__deleted":"false","__op":"c"}

`__deleted` is there where deletes are written as rows. A field that is added has the
name of its path: `source.ts_ms` is `__source_ts_ms`.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Final

from walstream.errors import ConfigError
from walstream.formats.debezium.columns import TableColumns
from walstream.formats.debezium.connect import Schema, text
from walstream.formats.debezium.envelope import BACKFILL, BESIDE
from walstream.formats.debezium.json_text import json_text
from walstream.formats.debezium.names import schema_name, topic
from walstream.formats.debezium.options import CONNECTOR, DebeziumOptions
from walstream.formats.debezium.sink_turn import SinkTurn
from walstream.formats.debezium.source_block import (
    OP,
    SOURCE,
    TIMES,
    TRANSACTION,
    unix_micros,
)
from walstream.op import Kind, ReplicationOp, Table

DELETED: Final = "__deleted"
_LETTERS: Final = {
    Kind.INSERT: "c",
    Kind.UPDATE: "u",
    Kind.DELETE: "d",
    Kind.TRUNCATE: "t",
}
_BLOCKS: Final = {
    "": (("op", OP), *TIMES),
    "source": SOURCE.fields,
    "transaction": TRANSACTION.fields,
}
_AddedField = tuple[str, Schema, Callable[[ReplicationOp], str]]


class UnwrappedEncoder:
    """Encodes the ops of one table."""

    truncates: ClassVar = False

    def __init__(
        self,
        table: Table,
        options: DebeziumOptions,
        turn: SinkTurn,
        snapshot: str = BESIDE,
    ) -> None:
        """`snapshot` says of rows that are no change how they were read."""
        self.columns = TableColumns(table, options)
        self._turn = turn
        self._options = options
        self._table = table
        self._snapshot = snapshot
        self._deletes = options.deletes
        self._rewrites = self._deletes.startswith("rewrite")
        self._added = [self._field(told) for told in options.add_fields]
        prefix = topic(options.name, table.schema, table.name)
        row = self.columns.schema(schema_name(f"{prefix}.Value", options.adjust))
        added = [(name, schema) for name, schema, _ in self._added]
        if self._rewrites:
            added.insert(0, (DELETED, text().as_optional()))
        self.schema = replace(row, fields=(*row.fields, *added))
        self._before, self._behind = "", ""
        if options.schemas:
            self._before = f'{{"schema":{self.schema.json()},"payload":'
            self._behind = "}"

    def encode(self, op: ReplicationOp) -> bytes:
        """Write the row of one op: the old one of a Delete."""
        row = op.old if op.kind is Kind.DELETE else op.new
        written = self.columns.write(op, row or ())
        added = [f"{json_text(name)}:{write(op)}" for name, _, write in self._added]
        if self._rewrites:
            flag = "true" if op.kind is Kind.DELETE else "false"
            added.insert(0, f'"{DELETED}":"{flag}"')
        fields = written[1:-1]
        body = ",".join([fields, *added] if fields else added)
        return f"{self._before}{{{body}}}{self._behind}".encode()

    def values(self, op: ReplicationOp) -> list[bytes | None]:
        """Return the values of an op's records, in order: None is a tombstone."""
        if op.kind is Kind.TRUNCATE:
            return []
        if op.kind is not Kind.DELETE:
            return [self.encode(op)]
        if self._deletes == "drop":
            return []
        if self._deletes == "tombstone":
            return [None]
        value = self.encode(op)
        return [value] if self._deletes == "rewrite" else [value, None]

    def _field(self, told: str) -> _AddedField:
        """Return name, schema and value of a field that is added."""
        path, _, named = told.strip().partition(":")
        block, dot, field = path.rpartition(".")
        if not dot:
            block = next(
                (one for one in ("transaction", "") if field in dict(_BLOCKS[one])),
                "source",
            )
        schema = dict(_BLOCKS.get(block, ())).get(field)
        if schema is None:
            raise ConfigError(
                f"add_fields names {path!r}, which no record has",
                hint="name op, ts_ms, ts_us, ts_ns, or a field of source or "
                "transaction",
            )
        name = self._options.add_prefix + (named or path.replace(".", "_"))
        schema = replace(schema, optional=True, default="")
        return name, schema, self._writer(block, field)

    def _writer(self, block: str, field: str) -> Callable[[ReplicationOp], str]:
        if block == "":
            return self._op if field == "op" else self._processed(field)
        if block == "transaction":
            return self._transaction(field)
        constant = {
            "version": self._options.version,
            "connector": CONNECTOR,
            "name": self._options.name,
            "db": self._options.database,
            "schema": self._table.schema,
            "table": self._table.name,
        }.get(field)
        if constant is not None:
            written = json_text(constant)
            return lambda _: written
        return {
            "ts_ms": lambda op: str(unix_micros(op.commit_time) // 1000),
            "ts_us": lambda op: str(unix_micros(op.commit_time)),
            "ts_ns": lambda op: str(unix_micros(op.commit_time) * 1000),
            "snapshot": self._read,
            "sequence": _sequence,
            "txId": lambda op: "null" if op.snapshot else str(op.xid),
            "lsn": self._lsn,
            "xmin": lambda _: "null",
            "origin": lambda _: self._origin("origin"),
            "origin_lsn": lambda _: self._origin("origin_lsn"),
        }[field]

    def _op(self, op: ReplicationOp) -> str:
        letter = _LETTERS[op.kind]
        return '"r"' if op.snapshot and letter == "c" else f'"{letter}"'

    def _processed(self, field: str) -> Callable[[ReplicationOp], str]:
        turn = self._turn
        divisor = {"ts_ms": 1_000_000, "ts_us": 1000, "ts_ns": 1}[field]
        return lambda _: str(turn.nanoseconds // divisor)

    def _transaction(self, field: str) -> Callable[[ReplicationOp], str]:
        def write(op: ReplicationOp) -> str:
            if op.snapshot or not self._options.transaction_block:
                return "null"
            if field == "id":
                return f'"{op.xid}:{op.row_lsn}"'
            if field == "total_order":
                return str(op.seq_id + 1)
            return str(self._turn.order(self._table.full_name, op.lsn, op.seq_id))

        return write

    def _read(self, op: ReplicationOp) -> str:
        return f'"{self._snapshot}"' if op.snapshot else '"false"'

    def _lsn(self, op: ReplicationOp) -> str:
        beside = op.snapshot and self._snapshot != BACKFILL
        return "null" if beside else str(op.row_lsn)

    def _origin(self, field: str) -> str:
        name, lsn = self._turn.origin_name, self._turn.origin_lsn
        if not name:
            return "null"
        return json_text(name) if field == "origin" else str(lsn)


def _sequence(op: ReplicationOp) -> str:
    first = "null" if op.snapshot else f'\\"{op.lsn}\\"'
    return f'"[{first},\\"{op.row_lsn}\\"]"'
