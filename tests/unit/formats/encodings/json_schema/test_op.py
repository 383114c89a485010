"""The format `op` with JSON Schema: what a reader gets back is the op."""

from dataclasses import replace
from typing import Any

import pytest

from tests.support.loads.registered_op import TABLE, back_in_json, op
from tests.support.oracles import every_type
from tests.unit.formats.encodings.avro.test_op import OPS, said
from walstream.formats.context import Context
from walstream.formats.encodings import encoder_in, parts_of
from walstream.formats.encodings.json_schema.op import JsonSchemaOp
from walstream.formats.encodings.op.schema import op_options
from walstream.formats.encodings.subject import SchemaId
from walstream.formats.op import OpEncoder, decode
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, UNCHANGED, Row

OPTIONS = op_options("app", "db", "none")


@pytest.mark.parametrize("one", OPS)
def test_a_reader_gets_what_json_says(one: ReplicationOp) -> None:
    encoder = JsonSchemaOp(TABLE, OPTIONS)
    for each in (one, replace(one, snapshot=True, lsn=7)):
        found = said(back_in_json(encoder, each))
        assert found == said(decode(OpEncoder(TABLE).encode(each)))


@pytest.mark.parametrize("value", [UNCHANGED, OMITTED])
def test_what_was_not_sent_is_named(value: Any) -> None:
    encoder = JsonSchemaOp(TABLE, OPTIONS)
    gone: Row = ["1", value, value]
    for one in (op(Kind.DELETE, gone), op(Kind.UPDATE, gone, ["2", value, "NaN"])):
        one.absent = True
        found = said(back_in_json(encoder, one))
        assert found == said(decode(OpEncoder(TABLE).encode(one)))


@pytest.mark.parametrize("number", range(3))
def test_each_text_of_each_type_comes_back(number: int) -> None:
    table = every_type.tables()[number]
    encoder = JsonSchemaOp(table, OPTIONS)
    for one in every_type.ops(table):
        found = said(back_in_json(encoder, one))
        assert found == said(decode(OpEncoder(table).encode(one)))


def test_its_parts_have_ids_and_any_names() -> None:
    table = Table("Odd-1", "t b", ("k é", "1"), (0,), (23, 25))
    context = Context(debezium=OPTIONS, encoding="json_schema")
    encoder = encoder_in("json_schema", "op")(table, context)
    assert isinstance(encoder, JsonSchemaOp)
    one = ReplicationOp(Kind.INSERT, table, 1, 0, None, ["1", "x"])
    assert back_in_json(encoder, one).table.columns == ("k é", "1")
    parts = parts_of(encoder, "t", (0,), context)
    assert [part.schema.subject for part in parts] == ["t-value", "t-key"]
    assert parts_of(encoder, "t", (), context) == parts[:1]
    for part in parts:
        part.set(SchemaId(7))
    assert encoder.encode(one).startswith(b'\0\0\0\0\7{"table_name":"t b"')
    assert encoder.key((0,)).render(one) == '\0\0\0\0\7{"k é":1}'.encode()
