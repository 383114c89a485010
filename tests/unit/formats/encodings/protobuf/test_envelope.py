"""Envelopes in protobuf: what the one in JSON says, read by Google's library."""

import json
from typing import Any

import pytest

from tests.support.oracles import every_type
from tests.support.oracles.avro_values import comparable
from tests.support.oracles.protobuf_values import meant, read
from walstream.errors import WalstreamError
from walstream.formats.debezium import BACKFILL, BESIDE, EnvelopeEncoder, SinkTurn
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.encodings.protobuf import number, parsed_proto, proto_shape
from walstream.formats.encodings.protobuf.envelope import ProtoEnvelope
from walstream.formats.encodings.protobuf.reader import ProtoReader
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, UNCHANGED, Row

TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25))


def registered(made: Any, *history: str) -> str:
    """Return the text that a registry would have."""
    versions = [parsed_proto(text) for text in history]
    return number(proto_shape(made.schema), versions).text()


def both(op: ReplicationOp, turn: SinkTurn, snapshot: str = BESIDE, **rest: Any) -> Any:
    """Return what an op says in protobuf, and in JSON."""
    options = DebeziumOptions("app", "db", **rest)
    made = ProtoEnvelope(op.table, options, turn, snapshot)
    text = registered(made)
    made.use(text)
    other = EnvelopeEncoder(op.table, options, turn, snapshot)
    shown = json.loads(other.encode(op))
    data = made.encode(op)
    found = read(made.schema, text, data)
    assert found == comparable(meant(other.schema, shown))
    document = ProtoReader(text).read(b"\0" + data, 0)
    assert document.keys() == shown.keys()
    return found


@pytest.mark.parametrize("mode", range(len(every_type.MODES)))
@pytest.mark.parametrize("table", range(3))
def test_each_type_in_each_mode_says_what_json_says(mode: int, table: int) -> None:
    chosen = every_type.tables()[table]
    width = len(chosen.columns) - 1
    made = every_type.ops(chosen)
    for value in (UNCHANGED, OMITTED):
        row: Row = ["3", *([value] * width)]
        made.append(ReplicationOp(Kind.DELETE, chosen, 6, 0, row, None, absent=True))
    for op in made:
        both(op, SinkTurn(), **every_type.MODES[mode])


@pytest.mark.parametrize(
    ("kind", "letter"),
    [
        (Kind.INSERT, "c"),
        (Kind.UPDATE, "u"),
        (Kind.DELETE, "d"),
        (Kind.TRUNCATE, "t"),
    ],
)
def test_each_kind_says_what_json_says(kind: Kind, letter: str) -> None:
    turn = SinkTurn()
    turn.begin(1_764_000_000_123_456_789)
    turn.come_from("elsewhere", 77)
    old = ["1", "a"] if kind in {Kind.UPDATE, Kind.DELETE} else None
    new = ["1", "b"] if kind in {Kind.UPDATE, Kind.INSERT} else None
    op = ReplicationOp(kind, TABLE, 9, 2, old, new, row_lsn=8, xid=771, commit_time=-5)
    for block in (False, True):
        found = both(op, turn, transaction_block=block)
        assert found["op"] == letter
        assert (found["transaction"] is not None) == block


@pytest.mark.parametrize("snapshot", [BACKFILL, BESIDE])
@pytest.mark.parametrize("kind", [Kind.INSERT, Kind.TRUNCATE])
def test_rows_that_were_read_say_it(snapshot: str, kind: Kind) -> None:
    new = ["1", "b"] if kind is Kind.INSERT else None
    op = ReplicationOp(kind, TABLE, 9, 2, None, new, snapshot=True)
    found = both(op, SinkTurn(), snapshot)
    assert found["op"] == ("r" if kind is Kind.INSERT else "t")
    assert found["source"]["snapshot"] == snapshot


def test_a_head_stands_before_each_and_a_delete_has_a_tombstone() -> None:
    made = ProtoEnvelope(TABLE, DebeziumOptions("app"), SinkTurn())
    made.use(registered(made))
    op = ReplicationOp(Kind.DELETE, TABLE, 9, 2, ["1", None])
    bare = made.encode(op)
    made.head = b"\0\0\0\0\7\0"
    assert made.values(op) == [made.head + bare, None]


def test_without_numbers_nothing_is_written() -> None:
    made = ProtoEnvelope(TABLE, DebeziumOptions("app"), SinkTurn())
    with pytest.raises(WalstreamError, match="without numbers"):
        made.encode(ReplicationOp(Kind.INSERT, TABLE, 9, 2, None, ["1", "x"]))


def test_the_clock_and_the_transaction_are_those_of_the_op() -> None:
    turn = SinkTurn()
    made = ProtoEnvelope(TABLE, DebeziumOptions("app"), turn)
    text = registered(made)
    made.use(text)
    seen = []
    for lsn, nanoseconds in ((9, 1_000_000), (9, 2_000_000), (10, 2_000_000)):
        turn.begin(nanoseconds)
        turn.come_from(f"o{lsn}", lsn)
        op = ReplicationOp(Kind.INSERT, TABLE, lsn, 0, None, ["1", "x"], xid=lsn)
        found = read(made.schema, text, made.encode(op))
        source = found["source"]
        seen.append((found["ts_ms"], source["origin"], source["txId"]))
    assert seen == [(1, "o9", 9), (2, "o9", 9), (2, "o10", 10)]


def test_fields_have_the_order_of_numbers_that_another_gave() -> None:
    """A subject may have had other schemas: whatever the order is, it is kept."""
    other = """syntax = "proto3"; package app.public.t;
    message Envelope { string op = 3; optional int64 ts_ns = 1;
      optional Source source = 9; optional int64 ts_ms = 4;
      message Source { optional int64 lsn = 1; optional string sequence = 5; }
      message Value { optional string v = 2; int32 id = 5; } }"""
    turn = SinkTurn()
    turn.begin(1_764_000_000_123_456_789)
    made = ProtoEnvelope(TABLE, DebeziumOptions("app", "db"), turn)
    text = registered(made, other)
    made.use(text)
    shown = EnvelopeEncoder(TABLE, DebeziumOptions("app", "db"), turn)
    for op in (
        ReplicationOp(Kind.UPDATE, TABLE, 9, 2, ["1", "a"], ["1", None], row_lsn=8),
        ReplicationOp(Kind.INSERT, TABLE, 9, 2, None, ["0", "a"], snapshot=True),
    ):
        found = read(made.schema, text, made.encode(op))
        assert found == comparable(meant(made.schema, json.loads(shown.encode(op))))
