"""Ops with schemas as a sink writes them, and what a reader gets of them."""

import json
import re
from typing import Final

import jsonschema

from consumer.op import ConsumerRecord, RegisteredOp
from tests.support.oracles.debezium_avro import read
from walstream.formats.encodings.avro.op import AvroOp
from walstream.formats.encodings.avro.reader import AvroReader
from walstream.formats.encodings.json_schema.op import JsonSchemaOp
from walstream.formats.encodings.json_schema.reader import JsonSchemaReader
from walstream.formats.encodings.op.document import OpDocument
from walstream.formats.encodings.op.schema import op_options
from walstream.formats.encodings.protobuf.numbering import number_text
from walstream.formats.encodings.protobuf.op import ProtoOp
from walstream.formats.encodings.protobuf.reader import ProtoReader
from walstream.formats.encodings.wire import HEAD
from walstream.op import ColumnFacts, Kind, ReplicationOp, Table
from walstream.row import Row

OPTIONS: Final = op_options("app", "db", "avro")
TABLE: Final = Table(
    "public",
    "t",
    ("id", "v", "n"),
    (0,),
    (23, 25, 1700),
    modifiers=(-1, -1, 327_686),
    facts=(
        ColumnFacts(not_null=True, default="5", type_oid=23, type_name="int4"),
        ColumnFacts(not_null=True, type_oid=25, type_name="text"),
        ColumnFacts(type_oid=1700, type_name="numeric"),
    ),
)


def op(kind: Kind, old: Row | None = None, new: Row | None = None) -> ReplicationOp:
    return ReplicationOp(kind, TABLE, 10, 3, old, new)


def back_in_json(encoder: JsonSchemaOp, one: ReplicationOp) -> ReplicationOp:
    """Return what a reader gets of the same with JSON Schema, which it fits."""
    written = encoder.encode(one)
    jsonschema.validate(json.loads(written), json.loads(encoder.schema_text))
    reader = JsonSchemaReader(encoder.schema_text)
    assert OpDocument.is_of(reader.schema)
    return OpDocument(reader.schema).read(reader.read(b"\0" * HEAD + written))


def back(encoder: AvroOp, one: ReplicationOp) -> ReplicationOp:
    """Return what a reader gets; an independent one reads all of it, too."""
    written = encoder.encode(one)
    read(encoder.schema_text, written)
    reader = AvroReader(encoder.schema_text)
    assert OpDocument.is_of(reader.schema)
    return OpDocument(reader.schema).read(reader.read(written, 0))


def bare_op(table: Table, row: Row) -> RegisteredOp:
    """Return an Insert in protobuf, by a schema without its comments."""
    encoder = ProtoOp(table, OPTIONS)
    text = number_text(encoder.schema_text, [], keep=False)
    encoder.use(text)
    encoder.head = b"\0" * HEAD + b"\0"
    reader = ProtoReader(re.sub("//.*", "", text))
    one = ReplicationOp(Kind.INSERT, table, 5, 1, None, row)
    document = OpDocument(reader.schema)
    made = document.read(reader.read(encoder.encode(one)), table.key)
    record = ConsumerRecord("t", 0, 0, None, b"")
    return RegisteredOp(made, record, has_units=document.has_units)
