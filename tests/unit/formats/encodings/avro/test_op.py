"""The format `op` in Avro: what a reader gets back is the op."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.loads.registered_op import OPTIONS, TABLE, back, op
from tests.support.oracles import every_type
from tests.support.oracles.debezium_avro import read
from walstream.errors import WalstreamError
from walstream.formats.context import Context
from walstream.formats.encodings import encoder_in, parts_of
from walstream.formats.encodings.avro.op import AvroOp
from walstream.formats.encodings.subject import SchemaId
from walstream.formats.op import OpEncoder, decode
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, UNCHANGED, Row

ROW = ["1", "x", "1.50"]
NULLS = ["1", None, None]
OPS = [
    op(Kind.INSERT, new=ROW),
    op(Kind.INSERT, new=["2", "", "NaN"]),
    op(Kind.UPDATE, None, ROW),
    op(Kind.UPDATE, ROW, NULLS),
    op(Kind.DELETE, ROW),
    op(Kind.TRUNCATE),
]


def said(one: ReplicationOp) -> tuple[Any, ...]:
    table = one.table
    named = one.kind, table.schema, table.name, table.columns, one.lsn, one.seq_id
    return *named, one.old, one.new, one.absent, one.snapshot, one.partitions


@pytest.mark.parametrize("one", OPS)
def test_a_reader_gets_what_json_says(one: ReplicationOp) -> None:
    encoder = AvroOp(TABLE, OPTIONS)
    for each in (one, replace(one, snapshot=True, lsn=7, partitions=4)):
        if each.kind is not Kind.TRUNCATE:
            each.partitions = 0
        assert said(back(encoder, each)) == said(decode(OpEncoder(TABLE).encode(each)))


@pytest.mark.parametrize("value", [UNCHANGED, OMITTED])
def test_what_was_not_sent_is_named(value: Any) -> None:
    encoder = AvroOp(TABLE, OPTIONS)
    gone: Row = ["1", value, value]
    for one in (op(Kind.DELETE, gone), op(Kind.UPDATE, gone, ["2", value, "NaN"])):
        one.absent = True
        assert said(back(encoder, one)) == said(decode(OpEncoder(TABLE).encode(one)))
        shown = read(encoder.schema_text, encoder.encode(one))
        assert shown["old"] == {"id": 1, "v": None, "n": None}
        assert shown["absent"]["old"] == ["v", "n"]


@pytest.mark.parametrize("number", range(3))
def test_each_text_of_each_type_comes_back(number: int) -> None:
    table = every_type.tables()[number]
    encoder = AvroOp(table, OPTIONS)
    for one in every_type.ops(table):
        assert said(back(encoder, one)) == said(decode(OpEncoder(table).encode(one)))


def test_columns_have_types_and_a_text_has_none_stands_beside() -> None:
    encoder = AvroOp(TABLE, OPTIONS)
    shown = read(encoder.schema_text, encoder.encode(op(Kind.INSERT, new=ROW)))
    assert shown["new"]["id"] == 1
    assert shown["new"]["n"] == (150).to_bytes(2, "big")
    assert (shown["lsn"], shown["seq_id"], shown["kind"]) == (10, 3, "Insert")
    assert (shown["old"], shown["absent"], shown["texts"]) == (None, None, None)
    assert shown["partitions"] is None
    one = op(Kind.INSERT, new=["1", "x", "NaN"])
    shown = read(encoder.schema_text, encoder.encode(one))
    assert shown["new"]["n"] is None
    assert shown["texts"] == {"old": None, "new": {"n": "NaN"}}


def test_its_parts_have_ids_and_names() -> None:
    context = Context(debezium=OPTIONS, encoding="avro")
    encoder = encoder_in("avro", "op")(TABLE, context)
    assert isinstance(encoder, AvroOp)
    parts = parts_of(encoder, "t", (0,), context)
    assert [one.schema.subject for one in parts] == ["t-value", "t-key"]
    for part in parts:
        part.set(SchemaId(7))
    one = op(Kind.INSERT, new=ROW)
    assert encoder.encode(one).startswith(b"\0\0\0\0\7\2t")
    assert encoder.values(one) == [encoder.encode(one)]
    assert encoder.key((0,)).render(one) == b"\0\0\0\0\7\2"
    assert encoder.headers(one) == [("walstream-position", b"10/3")]
    assert encoder.texts == frozenset()
    keyless = parts_of(encoder, "t", (), context)
    assert [one.schema.subject for one in keyless] == ["t-value"]


def test_names_that_avro_does_not_take_come_back() -> None:
    table = Table("Odd-1", "t b", ("k é", "1"), (0,), (23, 25))
    encoder = AvroOp(table, OPTIONS)
    one = ReplicationOp(Kind.INSERT, table, 1, 0, None, ["1", "x"])
    shown = read(encoder.schema_text, encoder.encode(one))
    assert shown["new"] == {"k__": 1, "_1": "x"}
    found = back(encoder, one).table
    assert (found.schema, found.name, found.columns) == ("Odd-1", "t b", ("k é", "1"))


def test_a_table_without_columns_has_ops() -> None:
    table = Table("public", "none", ())
    one = ReplicationOp(Kind.INSERT, table, 1, 0, None, [])
    assert back(AvroOp(table, OPTIONS), one).new == []


def test_what_has_no_form_is_refused() -> None:
    encoder = AvroOp(TABLE, OPTIONS)
    with pytest.raises(WalstreamError, match="63 bits"):
        encoder.encode(replace(op(Kind.TRUNCATE), lsn=1 << 63))
    with pytest.raises(WalstreamError, match="column 'id'"):
        encoder.encode(op(Kind.INSERT, new=["x", "y", "1"]))
