"""Envelopes: bytes of Apicurio's converter, and what the one in JSON says."""

import json
from base64 import b64decode
from typing import Any

import pytest

from tests.support.oracles import debezium_avro, every_type
from tests.support.oracles.avro_values import comparable, meant
from tests.support.oracles.debezium_avro import read
from walstream.formats.debezium import BACKFILL, BESIDE, EnvelopeEncoder, SinkTurn
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.encodings.avro import AvroEnvelope
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, UNCHANGED, Row

TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25))


@pytest.mark.parametrize("mode", range(every_type.ORACLE_MODES))
@pytest.mark.parametrize("number", range(3))
def test_each_type_in_each_mode_has_the_bytes_of_the_converter(
    mode: int, number: int
) -> None:
    table = every_type.tables()[number]
    made = AvroEnvelope(table, every_type.options(mode), SinkTurn())
    told = debezium_avro.converted()["records"][f"m{mode}.public.{table.name}"]
    for op, (_, (_, data)) in zip(every_type.ops(table), told, strict=True):
        assert made.encode(op) == b64decode(data)


def both(op: ReplicationOp, turn: SinkTurn, snapshot: str = BESIDE, **rest: Any) -> Any:
    """Return what an op says in Avro, and in JSON."""
    options = DebeziumOptions("app", "db", **rest)
    avro = AvroEnvelope(op.table, options, turn, snapshot)
    other = EnvelopeEncoder(op.table, options, turn, snapshot)
    shown = json.loads(other.encode(op))
    found = comparable(read(avro.schema_text, avro.encode(op)))
    assert found == comparable(meant(other.schema, shown))
    return found


@pytest.mark.parametrize("mode", range(len(every_type.MODES)))
@pytest.mark.parametrize("number", range(3))
def test_each_type_in_each_mode_says_what_json_says(mode: int, number: int) -> None:
    table = every_type.tables()[number]
    width = len(table.columns) - 1
    made = every_type.ops(table)
    for value in (UNCHANGED, OMITTED):
        row: Row = ["3", *([value] * width)]
        made.append(ReplicationOp(Kind.DELETE, table, 6, 0, row, None, absent=True))
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
    made = AvroEnvelope(TABLE, DebeziumOptions("app"), SinkTurn())
    bare = made.encode(ReplicationOp(Kind.DELETE, TABLE, 9, 2, ["1", None]))
    made.head = b"\0\0\0\0\7"
    op = ReplicationOp(Kind.DELETE, TABLE, 9, 2, ["1", None])
    assert made.values(op) == [made.head + bare, None]


def test_the_clock_and_the_transaction_are_those_of_the_op() -> None:
    turn = SinkTurn()
    made = AvroEnvelope(TABLE, DebeziumOptions("app"), turn)
    seen = []
    for lsn, nanoseconds in ((9, 1_000_000), (9, 2_000_000), (10, 2_000_000)):
        turn.begin(nanoseconds)
        turn.come_from(f"o{lsn}", lsn)
        op = ReplicationOp(Kind.INSERT, TABLE, lsn, 0, None, ["1", "x"], xid=lsn)
        found = read(made.schema_text, made.encode(op))
        seen.append(
            (found["ts_ms"], found["source"]["origin"], found["source"]["txId"])
        )
    assert seen == [(1, "o9", 9), (2, "o9", 9), (2, "o10", 10)]
