"""The format `op` in protobuf: what a reader gets back is the op."""

from dataclasses import replace

import pytest

from tests.support.loads.registered_op import OPTIONS, TABLE, op
from tests.support.oracles import every_type
from tests.unit.formats.encodings.avro.test_op import OPS, said
from walstream.errors import WalstreamError
from walstream.formats.context import Context
from walstream.formats.encodings import encoder_in, parts_of
from walstream.formats.encodings.op.document import OpDocument
from walstream.formats.encodings.protobuf.numbering import number_text
from walstream.formats.encodings.protobuf.op import ProtoOp
from walstream.formats.encodings.readers import reader_of
from walstream.formats.encodings.subject import SchemaId
from walstream.formats.op import OpEncoder, decode
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, Row

CONTEXT = Context(debezium=OPTIONS, encoding="protobuf")


def registered(encoder: ProtoOp) -> str:
    """Give its parts numbers and ids, and return the text of its values."""
    texts = {}
    for part in parts_of(encoder, "t", encoder._columns.table.key, CONTEXT):  # noqa: SLF001
        text = number_text(part.schema.text, [], keep=False)
        texts[part.schema.subject] = text
        part.set(SchemaId(7, text))
    return texts["t-value"]


def back(encoder: ProtoOp, one: ReplicationOp) -> ReplicationOp:
    reader = reader_of("PROTOBUF", registered(encoder))
    assert OpDocument.is_of(reader.schema)
    return OpDocument(reader.schema).read(reader.read(encoder.encode(one)))


@pytest.mark.parametrize("one", OPS)
def test_a_reader_gets_what_json_says(one: ReplicationOp) -> None:
    encoder = ProtoOp(TABLE, OPTIONS)
    for each in (one, replace(one, snapshot=True, lsn=7)):
        assert said(back(encoder, each)) == said(decode(OpEncoder(TABLE).encode(each)))


def test_what_was_not_sent_is_named() -> None:
    encoder = ProtoOp(TABLE, OPTIONS)
    gone: Row = ["1", OMITTED, OMITTED]
    one = op(Kind.UPDATE, gone, ["2", OMITTED, "NaN"])
    one.absent = True
    assert said(back(encoder, one)) == said(decode(OpEncoder(TABLE).encode(one)))


@pytest.mark.parametrize("number", range(3))
def test_each_text_of_each_type_comes_back(number: int) -> None:
    table = every_type.tables()[number]
    encoder = ProtoOp(table, OPTIONS)
    for one in every_type.ops(table):
        assert said(back(encoder, one)) == said(decode(OpEncoder(table).encode(one)))


def test_names_that_protobuf_does_not_take_come_back() -> None:
    table = Table("Odd-1", "t b", ("k é", "1"), (0,), (23, 25))
    encoder = encoder_in("protobuf", "op")(table, CONTEXT)
    assert isinstance(encoder, ProtoOp)
    one = ReplicationOp(Kind.INSERT, table, 1, 0, None, ["1", "x"])
    with pytest.raises(WalstreamError, match="without numbers"):
        encoder.encode(one)
    assert back(encoder, one).table.columns == ("k é", "1")
    assert encoder.encode(one).startswith(b"\0\0\0\0\7\0")
    assert encoder.key((0,)).render(one) == b"\0\0\0\0\7\0\10\1"
    keyless = parts_of(encoder, "t", (), CONTEXT)
    assert [part.schema.subject for part in keyless] == ["t-value"]
