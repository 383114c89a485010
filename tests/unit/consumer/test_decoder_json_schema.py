"""Records of a JSON Schema as ops, by the schemas of a registry.

`test_decoder_avro.py` has what does not depend on the language.
"""

import json
from collections.abc import Iterator
from typing import cast

import pytest

from consumer.decoder import Decoder
from consumer.op import EnvelopeOp
from consumer.registry import SchemaRegistry
from consumer.tail import other_line
from tests.support.loads.envelope import record
from tests.support.servers.faulty_registry import FaultyRegistry, faulty_registry
from walstream.errors import WalstreamError
from walstream.formats.debezium import DebeziumOptions, SinkTurn
from walstream.formats.encodings.json_schema.record import JsonSchemaRecords
from walstream.formats.encodings.wire import head
from walstream.op import ColumnFacts, Kind, ReplicationOp, Table

OPTIONS = DebeziumOptions("app")
TABLE = Table(
    "public",
    "t",
    ("id", "n", "s"),
    (0,),
    (23, 1700, 17_000),
    modifiers=(-1, 327_686, -1),
    facts=(
        ColumnFacts(not_null=True, type_oid=23, type_name="int4"),
        ColumnFacts(type_oid=1700, type_name="numeric"),
        ColumnFacts(type_oid=17_000, type_name="sparsevec"),
    ),
)
ROW = ["7", "1.50", "{1:1.5,3:2}/5"]
OP = ReplicationOp(Kind.INSERT, TABLE, 10, 0, None, ROW, row_lsn=10, xid=3)
HEADER = (("walstream-position", b"10/0"),)


@pytest.fixture
def server() -> Iterator[FaultyRegistry]:
    with faulty_registry() as started:
        yield started


@pytest.fixture
def decoder(server: FaultyRegistry) -> Iterator[Decoder]:
    registry = SchemaRegistry({"url": server.url})
    yield Decoder(registry=registry)
    registry.close()


def framed(server: FaultyRegistry, *, unwrapped: bool = False) -> JsonSchemaRecords:
    records = JsonSchemaRecords(TABLE, OPTIONS, SinkTurn(), unwrapped=unwrapped)
    for _, writer in records.framed((0,)):
        writer.head = head(server.register("s", writer.schema_text, "JSON"))
    return records


def test_an_op_has_types_and_key_of_its_schemas(
    server: FaultyRegistry, decoder: Decoder
) -> None:
    records = framed(server)
    one = record(records.encode(OP), records.key((0,)).render(OP))
    one = one._replace(headers=HEADER)
    op = cast("EnvelopeOp", decoder.op_of(one))
    assert (op.lsn, op.seq_id, op.exact) == (10, 0, True)
    assert op.key_names == {"id"}
    assert [op.new.get(name, str) for name in TABLE.columns] == ROW
    assert op.schemas is not None
    assert op.schemas["n"]["name"].endswith("Decimal")
    assert decoder.op_of(record(None, one.key)) is None  # a tombstone
    shown = decoder.as_json(one)
    assert shown.key == b'{"id":7}'
    vector = json.loads(shown.value or b"")["after"]["s"]["vector"]
    assert vector == [[1, 1.5], [3, 2.0]]  # as Connect's JsonConverter has it


def test_a_row_alone_has_a_line(server: FaultyRegistry, decoder: Decoder) -> None:
    one = record(framed(server, unwrapped=True).encode(OP))
    line = other_line(decoder.as_json(one, named=True))
    assert str(line).startswith("t[0] row id=7 n=")


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_text_that_is_no_schema_makes_a_record_unreadable(
    server: FaultyRegistry, decoder: Decoder, text: str
) -> None:
    number = server.register("s", text, "JSON")
    with pytest.raises(WalstreamError, match="not a JSON Schema"):
        decoder.op_of(record(head(number) + b"{}"))


def test_what_is_not_json_behind_the_id_is_told(
    server: FaultyRegistry, decoder: Decoder
) -> None:
    number = server.register("s", "{}", "JSON")
    with pytest.raises(WalstreamError, match="not JSON behind its schema's id"):
        decoder.op_of(record(head(number) + b"{"))
    with pytest.raises(WalstreamError, match="not a record of Debezium"):
        decoder.op_of(record(head(number) + b"[1]"))
