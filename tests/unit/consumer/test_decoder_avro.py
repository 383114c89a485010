"""Records in Avro as ops, and as the JSON that Connect's converter would have written.

The registry here is a dictionary; `test_registry.py` has a real one's answers.
"""

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest

from consumer.decoder import Decoder
from consumer.op import ConsumerRecord, EnvelopeOp, RegisteredOp
from consumer.registry import SchemaRegistry
from consumer.tail import other_line
from tests.support.loads import registered_op
from tests.support.loads.envelope import record
from tests.support.servers.faulty_registry import FaultyRegistry, faulty_registry
from walstream.errors import WalstreamError
from walstream.formats.debezium import (
    DebeziumOptions,
    HeartbeatRecords,
    MessageEncoder,
    SinkTurn,
    TransactionRecords,
)
from walstream.formats.debezium.connect import Schema
from walstream.formats.encodings.avro import (
    AvroEnvelope,
    AvroKey,
    AvroRow,
    avro_schema,
)
from walstream.formats.encodings.avro.op import AvroOp
from walstream.formats.encodings.avro.tree import document
from walstream.formats.encodings.wire import head
from walstream.formats.op import decode
from walstream.formats.txinfo import RowCounts
from walstream.op import Kind, ReplicationOp, Table

OPTIONS = DebeziumOptions("app", transaction_block=True)
TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25))
OP = ReplicationOp(Kind.INSERT, TABLE, 10, 0, None, ["7", "x"], row_lsn=10, xid=3)


class Bench:
    def __init__(self, server: FaultyRegistry) -> None:
        self.server = server
        self.registry = SchemaRegistry({"url": server.url})
        self.decoder = Decoder(registry=self.registry)

    def framed(self, writer: AvroEnvelope | AvroKey | AvroOp | AvroRow) -> Any:
        writer.head = head(self.server.register("s", writer.schema_text))
        return writer

    def written(self, schemas: tuple[Schema, Schema], texts: Any) -> ConsumerRecord:
        """Return a record of which both parts are in Avro."""
        parts = []
        for schema, text in zip(schemas, texts, strict=True):
            number = self.server.register("s", avro_schema(schema))
            parts.append(head(number) + document(schema, text))
        return record(parts[1], parts[0])


@pytest.fixture
def bench() -> Iterator[Bench]:
    with faulty_registry() as server:
        made = Bench(server)
        yield made
        made.registry.close()


def test_an_op_has_the_key_of_its_keys_schema(bench: Bench) -> None:
    envelope = bench.framed(AvroEnvelope(TABLE, OPTIONS, SinkTurn()))
    key = bench.framed(AvroKey(envelope.rows, OPTIONS, (0,)))
    one = record(envelope.encode(OP), key.render(OP))
    op = cast("EnvelopeOp", bench.decoder.op_of(one))
    assert (op.lsn, op.seq_id, op.exact) == (10, 0, True)
    assert op.key_names == {"id"}
    assert op.new.get("id", int) == 7
    assert op.schemas is not None
    assert op.schemas["id"]["type"] == "int32"
    keyless = cast("EnvelopeOp", bench.decoder.op_of(record(one.value)))
    assert keyless.key_names == set()
    in_json = cast("EnvelopeOp", bench.decoder.op_of(record(one.value, {"id": 7})))
    assert in_json.key_names == {"id"}
    assert bench.decoder.op_of(record(None, one.key)) is None  # a tombstone
    shown = bench.decoder.as_json(one)
    assert shown.key == b'{"id":7}'
    assert json.loads(shown.value or b"")["after"] == {"id": 7, "v": "x"}
    assert bench.decoder.as_json(record(b"{}", b"k")) == record(b"{}", b"k")


def test_the_format_op_is_op(bench: Bench) -> None:
    encoder = bench.framed(AvroOp(registered_op.TABLE, registered_op.OPTIONS))
    key = bench.framed(encoder.key((0,)))
    made = registered_op.op(Kind.UPDATE, None, ["7", "x", "NaN"])
    one = record(encoder.encode(made), key.render(made))
    op = cast("RegisteredOp", bench.decoder.op_of(one))
    assert isinstance(op, RegisteredOp)
    assert (op.lsn, op.seq_id, op.exact, op.kind) == (10, 3, True, Kind.UPDATE)
    assert op.key_names == {"id"}
    assert op.new["n"] == "NaN"
    keyless = cast("RegisteredOp", bench.decoder.op_of(record(one.value)))
    assert keyless.key_names == set()
    for named in (False, True):
        shown = bench.decoder.as_json(one, named=named)
        assert decode(shown.value or b"").new == ["7", "x", "NaN"]


def test_a_row_alone_is_no_op_and_has_a_line(bench: Bench) -> None:
    row = bench.framed(AvroRow(TABLE, OPTIONS, SinkTurn()))
    one = record(row.encode(OP))
    with pytest.raises(WalstreamError, match="not a record of Debezium"):
        bench.decoder.op_of(one)
    line = other_line(bench.decoder.as_json(one, named=True))
    assert line == "t[0] row id=7 v=x"


def test_boundaries_heartbeats_and_messages_are_passed_over(bench: Bench) -> None:
    turn = SinkTurn()
    transactions = TransactionRecords(OPTIONS)
    begin = transactions.begin(3, 10, 0)
    end = transactions.end(3, (0, 10), 0, RowCounts())
    message = MessageEncoder(OPTIONS, turn)
    content = message.encode("p", b"hello", (10, 10), (3, 0))
    heartbeats = HeartbeatRecords(OPTIONS)
    beat = heartbeats.key, heartbeats.value(1)
    for schemas, texts, word in (
        (transactions.schemas, begin, "BEGIN"),
        (transactions.schemas, end, "END"),
        (message.schemas, (message.key("p"), content), "message"),
        (heartbeats.schemas, beat, "heartbeat"),
    ):
        one = bench.written(schemas, texts)
        assert bench.decoder.op_of(one) is None
        assert word in str(other_line(bench.decoder.as_json(one, named=True)))


def test_without_a_registry_it_says_what_to_set() -> None:
    with pytest.raises(WalstreamError, match="in a schema registry") as found:
        Decoder().op_of(record(head(1) + b"x"))
    assert "registry=" in found.value.hint


@pytest.mark.parametrize("value", [b"\0", b"\0\0\0\1", b"\1\0\0\0\1"])
def test_other_bytes_are_poison_of_another_kind(bench: Bench, value: bytes) -> None:
    with pytest.raises(WalstreamError, match="not a record of Debezium"):
        bench.decoder.op_of(record(value))
    assert bench.server.asked == []
