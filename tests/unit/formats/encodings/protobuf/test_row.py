"""Unwrapped rows say in protobuf what they say in JSON."""

import json
from typing import Any

import pytest

from tests.support.oracles.avro_values import comparable
from tests.support.oracles.protobuf_values import meant, read
from walstream.errors import WalstreamError
from walstream.formats.debezium import BACKFILL, SinkTurn, UnwrappedEncoder
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.encodings.protobuf import number, parsed_proto, proto_shape
from walstream.formats.encodings.protobuf.row import ProtoRow
from walstream.op import Kind, ReplicationOp, Table

TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25))
FIELDS = (
    *("op", "ts_ms", "source.lsn", "source.ts_us", "txId:xid", "snapshot", "version"),
    *("sequence", "xmin", "origin", "transaction.id", "total_order", "ts_ns"),
)
OLDER = """syntax = "proto3"; package app.public.t; message Value {
  optional string __op = 1; optional string v = 2; optional int64 __ts_ms = 4; }"""


def _both(op: ReplicationOp, history: str, **rest: Any) -> Any:
    turn = SinkTurn()
    turn.begin(1_764_000_000_123_456_789)
    turn.come_from("ü", 7)
    options = DebeziumOptions("app", "db", add_fields=FIELDS, **rest)
    made = ProtoRow(TABLE, options, turn, BACKFILL)
    versions = [parsed_proto(history)] if history else []
    text = number(proto_shape(made.schema), versions).text()
    made.use(text)
    other = UnwrappedEncoder(TABLE, options, turn, BACKFILL)
    found = read(made.schema, text, made.encode(op))
    assert found == comparable(meant(other.schema, json.loads(other.encode(op))))
    return found


@pytest.mark.parametrize("history", ["", OLDER])
@pytest.mark.parametrize("snapshot", [False, True])
@pytest.mark.parametrize("kind", [Kind.INSERT, Kind.UPDATE, Kind.DELETE])
def test_a_row_and_its_added_fields_say_what_json_says(
    kind: Kind, snapshot: bool, history: str
) -> None:
    """Whatever their numbers are, which may stand amid those of columns."""
    old = ["1", "a"] if kind is not Kind.INSERT else None
    new = ["1", "b"] if kind is not Kind.DELETE else None
    op = ReplicationOp(
        kind, TABLE, 9, 2, old, new, row_lsn=8, xid=771, snapshot=snapshot
    )
    for deletes in ("tombstone", "rewrite"):
        found = _both(op, history, transaction_block=True, deletes=deletes)
        assert found["v"] == ("b" if new else "a")
        shown = "true" if kind is Kind.DELETE else "false"
        assert found.get("__deleted") == (shown if deletes == "rewrite" else None)


def test_deletes_are_what_the_option_says() -> None:
    made = ProtoRow(TABLE, DebeziumOptions("app", deletes="rewrite"), SinkTurn())
    op = ReplicationOp(Kind.DELETE, TABLE, 9, 2, ["1", None])
    with pytest.raises(WalstreamError, match="without numbers"):
        made.encode(op)
    made.use(number(proto_shape(made.schema), []).text())
    made.head = b"\0\0\0\0\7\0"
    (value,) = made.values(op)
    assert value == made.head + b"\x08\1\x1a\4true"
