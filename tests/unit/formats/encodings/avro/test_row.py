"""Unwrapped rows say in Avro what they say in JSON."""

import json
from typing import Any

import pytest

from tests.support.oracles.avro_values import comparable, meant
from tests.support.oracles.debezium_avro import read
from walstream.formats.debezium import BACKFILL, SinkTurn, UnwrappedEncoder
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.encodings.avro import AvroRow
from walstream.op import Kind, ReplicationOp, Table

TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25))
FIELDS = (
    *("op", "ts_ms", "source.lsn", "source.ts_us", "txId:xid", "snapshot", "version"),
    *("sequence", "xmin", "origin", "transaction.id", "total_order", "ts_ns"),
)


def _both(op: ReplicationOp, **rest: Any) -> Any:
    turn = SinkTurn()
    turn.begin(1_764_000_000_123_456_789)
    turn.come_from("ü", 7)
    options = DebeziumOptions("app", "db", add_fields=FIELDS, **rest)
    avro = AvroRow(TABLE, options, turn, BACKFILL)
    other = UnwrappedEncoder(TABLE, options, turn, BACKFILL)
    found = read(avro.schema_text, avro.encode(op))
    shown = json.loads(other.encode(op))
    assert comparable(found) == comparable(meant(other.schema, shown))
    return found


@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("snapshot", [False, True])
@pytest.mark.parametrize("kind", [Kind.INSERT, Kind.UPDATE, Kind.DELETE])
def test_a_row_and_its_added_fields_say_what_json_says(
    kind: Kind, snapshot: bool, block: bool
) -> None:
    old = ["1", "a"] if kind is not Kind.INSERT else None
    new = ["1", "b"] if kind is not Kind.DELETE else None
    op = ReplicationOp(
        kind, TABLE, 9, 2, old, new, row_lsn=8, xid=771, snapshot=snapshot
    )
    for deletes in ("tombstone", "rewrite"):
        found = _both(op, transaction_block=block, deletes=deletes)
        assert found["v"] == ("b" if new else "a")
        shown = "true" if kind is Kind.DELETE else "false"
        assert found.get("__deleted") == (shown if deletes == "rewrite" else None)


@pytest.mark.parametrize(
    ("deletes", "records"),
    [
        ("tombstone", "0"),
        ("rewrite", "1"),
        ("rewrite-with-tombstone", "10"),
        ("drop", ""),
    ],
)
def test_deletes_are_what_the_option_says(deletes: Any, records: str) -> None:
    made = AvroRow(TABLE, DebeziumOptions("app", deletes=deletes), SinkTurn())
    made.head = b"\0\0\0\0\7"
    values = made.values(ReplicationOp(Kind.DELETE, TABLE, 9, 2, ["1", None]))
    assert "".join("0" if one is None else "1" for one in values) == records
    assert all(one is None or one.startswith(made.head) for one in values)
    assert made.values(ReplicationOp(Kind.TRUNCATE, TABLE, 9, 2)) == []
