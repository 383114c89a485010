"""Records in Avro: those of a real Debezium, and those that walstream writes.

tests/data/debezium/record.py says how they came about.
"""

import gzip
import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, Final

import fastavro

from tests.support.oracles.avro_records import without_logical_types
from tests.support.oracles.debezium import FOLDER, ops
from walstream.formats.debezium import (
    DebeziumOptions,
    MessageEncoder,
    SinkTurn,
    TransactionRecords,
)
from walstream.formats.debezium import names as topics
from walstream.formats.encodings.avro import (
    AvroEnvelope,
    AvroKey,
    avro_schema,
)
from walstream.formats.encodings.avro.tree import document
from walstream.formats.txinfo import RowCounts
from walstream.op import EPOCH_S, ReplicationOp, Table, halves
from walstream.pipeline.pgoutput import Begin, Commit, LogicalMessage

OPTIONS: Final = DebeziumOptions(
    "av",
    "postgres",
    transaction_block=True,
    adjust_fields="avro",
    version="3.5.0.Final",
)
_ID: Final = 5  # bytes of a magic byte and a schema's id


@dataclass(frozen=True)
class AvroRecord:
    """One record of a topic, without the ids of its schemas."""

    topic: str
    key: bytes | None
    value: bytes | None
    key_schema: str = ""
    value_schema: str = ""


def golden() -> dict[str, list[AvroRecord]]:
    """Read the records that Debezium wrote, by topic."""
    found = json.loads(gzip.decompress((FOLDER / "goldavro.json.gz").read_bytes()))
    return {
        topic: [AvroRecord(topic, _data(key), _data(value)) for key, value in records]
        for topic, records in found.items()
    }


def _data(shown: str | None) -> bytes | None:
    return None if shown is None else b64decode(shown)[_ID:]


def converted() -> dict[str, Any]:
    """Read what Apicurio's converter made of documents in JSON, with its schemas."""
    path = FOLDER / "avro.json.gz"
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


class AvroPairs:
    """Yields Debezium's records, each with walstream's.

    Debezium's are of another run of the same workload: walstream's have its LSNs, its
    transactions' numbers and its times, and so differ in nothing else.
    """

    def __init__(self) -> None:
        self._turn = SinkTurn()
        self._theirs = {topic: iter(records) for topic, records in golden().items()}
        self._made: dict[int, tuple[Table, AvroEnvelope, AvroKey]] = {}
        self._messages = MessageEncoder(OPTIONS, self._turn)
        self._transactions = TransactionRecords(OPTIONS)
        self._rows = RowCounts()

    def pairs(self) -> Iterator[tuple[AvroRecord, AvroRecord]]:
        """Yield both in the order of the stream, until each has been looked at."""
        first = True
        for _, what in ops():
            match what:
                case Begin():
                    first, self._rows = True, RowCounts()
                case Commit():
                    yield self._transaction()
                case LogicalMessage():
                    yield self._message(what)
                case ReplicationOp():
                    if first:
                        first = False
                        yield self._transaction()
                    yield from self._row(what)
                case _:
                    pass
        for topic, records in self._theirs.items():
            assert next(records, None) is None, topic

    def _transaction(self) -> tuple[AvroRecord, AvroRecord]:
        theirs = next(self._theirs[topics.transaction_topic(OPTIONS.name)])
        schemas = self._transactions.schemas
        told = read(avro_schema(schemas[1]), theirs.value)
        xid, lsn = map(int, told["id"].split(":"))
        time = told["ts_ms"] * 1000 - EPOCH_S * 1_000_000
        if told["status"] == "BEGIN":
            record = self._transactions.begin(xid, lsn, time)
        else:
            record = self._transactions.end(xid, (0, lsn), time, self._rows)
        key, value = map(document, schemas, record)
        return theirs, AvroRecord(theirs.topic, key, value)

    def _message(self, what: LogicalMessage) -> tuple[AvroRecord, AvroRecord]:
        theirs = next(self._theirs[topics.message_topic(OPTIONS.name)])
        schemas = self._messages.schemas
        shown = avro_schema(schemas[1])
        told = read(shown, theirs.value)
        self._turn.begin(told["ts_ms"] * 1_000_000)
        source = told["source"]
        place = _commit(source), source["lsn"]
        key = self._messages.key(what.prefix)
        value = self._messages.encode(
            what.prefix, what.content, place, (source["txId"], _time(source))
        )
        key, value = map(document, schemas, (key, value))
        return theirs, AvroRecord(theirs.topic, key, value, value_schema=shown)

    def _row(self, op: ReplicationOp) -> Iterator[tuple[AvroRecord, AvroRecord]]:
        known = self._made.get(op.table.oid)
        if known is None or known[0] is not op.table:
            shape = _asked_late(op.table)
            envelope = AvroEnvelope(shape, OPTIONS, self._turn)
            key = AvroKey(envelope.rows, OPTIONS, op.table.key)
            known = self._made[op.table.oid] = op.table, envelope, key
        _, envelope, key = known
        topic = topics.topic(OPTIONS.name, op.table.schema, op.table.name)
        for part in halves(op) if op.key_changed else (op,):
            self._rows.add(op.table)
            theirs = next(self._theirs[topic])
            told = read(envelope.schema_text, theirs.value)
            source = told["source"]
            part.lsn, part.row_lsn = _commit(source), source["lsn"]
            part.xid, part.commit_time = source["txId"], _time(source)
            self._turn.begin(told["ts_ns"])
            schemas = key.schema_text, envelope.schema_text
            for number, value in enumerate(envelope.values(part)):
                theirs = next(self._theirs[topic]) if number else theirs
                yield theirs, AvroRecord(topic, key.render(part), value, *schemas)


def _asked_late(table: Table) -> Table:
    """Return a table without the default that Debezium asked for after its renaming."""
    if table.name != "ddl" or table.columns[-1] != "w":
        return table
    return replace(
        table, facts=(*table.facts[:-1], replace(table.facts[-1], default=None))
    )


def read(schema: str, data: bytes | None) -> Any:
    """Read a record by an independent reader; bytes stay bytes."""
    parsed = fastavro.parse_schema(without_logical_types(json.loads(schema)))
    stream = BytesIO(data or b"")
    found = fastavro.schemaless_reader(stream, parsed, None)
    assert not stream.read()
    return found


def _commit(source: Any) -> int:
    return int(json.loads(source["sequence"])[0] or 0)


def _time(source: Any) -> int:
    return int(source["ts_us"]) - EPOCH_S * 1_000_000
