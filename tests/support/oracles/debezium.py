"""Records that a real Debezium wrote, and those that walstream writes of the same WAL.

tests/data/debezium/record.py says how they came about.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.support.oracles.column_facts import column_facts
from walstream.formats.debezium import (
    DebeziumKey,
    DebeziumOptions,
    EnvelopeEncoder,
    HeartbeatRecords,
    MessageEncoder,
    SinkTurn,
    TransactionRecords,
)
from walstream.formats.debezium import names as topics
from walstream.formats.txinfo import RowCounts
from walstream.lsn import Lsn, parse
from walstream.op import ColumnFacts, Kind, ReplicationOp, Table, halves
from walstream.pipeline.assembler import Assembler
from walstream.pipeline.pgoutput import (
    Begin,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Relation,
    Truncate,
    Type,
    Update,
    decode,
)
from walstream.pipeline.row_key import KeyHistory, KeySet

FOLDER: Final = Path(__file__).parents[2] / "data" / "debezium"
_VERSION: Final = "3.5.0.Final"
VARIANTS: Final = {
    "dbz": DebeziumOptions(
        "dbz", "postgres", schemas=True, transaction_block=True, version=_VERSION
    ),
    "dstr": DebeziumOptions(
        "dstr",
        "postgres",
        schemas=True,
        decimal="string",
        time="connect",
        interval="string",
        hstore="map",
        binary="base64",
        unknown=True,
        version=_VERSION,
    ),
    "ddbl": DebeziumOptions(
        "ddbl",
        "postgres",
        schemas=True,
        decimal="double",
        time="isostring",
        binary="hex",
        unknown=True,
        adjust="avro",
        version=_VERSION,
    ),
    "dus": DebeziumOptions(
        "dus",
        "postgres",
        schemas=True,
        time="adaptive_time_microseconds",
        binary="base64-url-safe",
        version=_VERSION,
    ),
}
"""The connectors' configurations."""
_TRUNCATES: Final = {"dbz", "dstr"}  # skipped.operations = none


@dataclass(frozen=True)
class Record:
    """One record of a topic."""

    topic: str
    key: str | None
    value: str | None
    headers: tuple[tuple[str, str], ...] = ()


def golden() -> dict[str, list[Record]]:
    """Read the records that Debezium wrote, by topic."""
    found = json.loads(gzip.decompress((FOLDER / "golden.json.gz").read_bytes()))
    return {
        topic: [
            Record(topic, key, value, tuple((name, text) for name, text in headers))
            for key, value, headers in records
        ]
        for topic, records in found.items()
    }


@cache
def frames() -> tuple[tuple[Lsn, bytes], ...]:
    """Read what the server sent."""
    found = json.loads(gzip.decompress((FOLDER / "frames.json.gz").read_bytes()))
    return tuple((parse(lsn), bytes.fromhex(payload)) for lsn, _, payload in found)


def facts() -> Iterator[tuple[ColumnFacts, ...]]:
    """Yield the facts of each Relation message."""
    for _, _, columns in json.loads((FOLDER / "facts.json").read_text("utf-8")):
        yield tuple(column_facts(one) for one in columns)


def ops() -> Iterator[tuple[Lsn, Any]]:
    """Yield ops, with the facts of their tables, and the other messages as they are."""
    assembler = Assembler(0)
    described = facts()
    tables: dict[int, Table] = {}

    def with_facts(op: ReplicationOp) -> ReplicationOp:
        op.table = tables[op.table.oid]
        return op

    for lsn, payload in frames():
        match message := decode(payload):
            case Begin():
                assembler.begin(message)
                yield lsn, message
            case Type():
                assembler.name_type(message)
            case Relation():
                keys = ("id",) if message.name == "full_" else ()
                table = assembler.describe(message, KeyHistory([KeySet(0, keys)]))
                tables[message.oid] = replace(table, facts=next(described))
            case Truncate():
                for op in assembler.truncate(message, lsn):
                    yield lsn, with_facts(op)
            case Insert() | Update() | Delete():
                yield lsn, with_facts(assembler.row(message, lsn))
            case _:
                yield lsn, message


class Writer:
    """Writes the records of one variant."""

    def __init__(self, options: DebeziumOptions) -> None:
        self.options = options
        self.turn = SinkTurn()
        self.encoders: dict[int, tuple[EnvelopeEncoder, DebeziumKey]] = {}
        self._tables: dict[int, Table] = {}
        self._messages = MessageEncoder(options, self.turn)
        self._transactions = TransactionRecords(options)
        self._rows = RowCounts()  # of the transaction

    def of(self, table: Table) -> tuple[EnvelopeEncoder, DebeziumKey]:
        if self._tables.get(table.oid) is not table:
            self._tables[table.oid] = table
            encoder = EnvelopeEncoder(table, self.options, self.turn)
            key = DebeziumKey(encoder.columns, self.options, table.key)
            self.encoders[table.oid] = encoder, key
        return self.encoders[table.oid]

    def records(self) -> Iterator[Record]:
        name = self.options.name
        begin, first = Begin(0, 0, 0), True
        for lsn, what in ops():
            match what:
                case Begin():
                    begin, first = what, True
                    self._rows = RowCounts()
                case Commit():
                    yield self._transaction(
                        self._transactions.end(
                            begin.xid,
                            (begin.final_lsn, what.end_lsn),
                            begin.commit_time,
                            self._rows,
                        )
                    )
                case LogicalMessage():
                    xid = begin.xid if what.transactional else None
                    key = self._messages.key(what.prefix)
                    place = (begin.final_lsn, lsn)
                    value = self._messages.encode(
                        what.prefix, what.content, place, (xid, begin.commit_time)
                    )
                    topic = topics.message_topic(name)
                    yield Record(topic, key.decode(), value.decode())
                case ReplicationOp():
                    if first:
                        first = False
                        yield self._transaction(
                            self._transactions.begin(begin.xid, lsn, begin.commit_time)
                        )
                    yield from self._row(what)
                case _:
                    pass

    def _transaction(self, record: tuple[bytes, bytes]) -> Record:
        topic = topics.transaction_topic(self.options.name)
        return Record(topic, record[0].decode(), record[1].decode())

    def _row(self, op: ReplicationOp) -> Iterator[Record]:
        encoder, key = self.of(op.table)
        topic = topics.topic(self.options.name, op.table.schema, op.table.name)
        if op.kind is Kind.TRUNCATE and self.options.name not in _TRUNCATES:
            return
        parts: list[tuple[ReplicationOp, tuple[tuple[str, bytes], ...]]] = [(op, ())]
        if op.key_changed:
            deleted, inserted = halves(op)
            of_deleted, of_inserted = key.change_headers(op)
            parts = [(deleted, (of_deleted,)), (inserted, (of_inserted,))]
        for part, headers in parts:
            self._rows.add(op.table)
            rendered = key.render(part)
            shown = tuple((name, text.decode()) for name, text in headers)
            for value in encoder.values(part):
                yield Record(
                    topic,
                    None if rendered is None else rendered.decode(),
                    None if value is None else value.decode(),
                    shown,
                )


def written(variant: str) -> dict[str, list[Record]]:
    """Write the records of a variant, by topic."""
    found: dict[str, list[Record]] = {}
    for record in Writer(VARIANTS[variant]).records():
        found.setdefault(record.topic, []).append(record)
    return found


def heartbeat(variant: str, millis: int) -> Record:
    """Write a heartbeat."""
    records = HeartbeatRecords(VARIANTS[variant])
    topic = topics.heartbeat_topic(variant)
    return Record(topic, records.key.decode(), records.value(millis).decode())
