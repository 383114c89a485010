"""What is written in Avro is read as what is written in JSON; anything is refused."""

import json
import tracemalloc
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.test_debezium import MODES, OIDS, TEXTS
from tests.support.oracles.avro_values import comparable, meant
from tests.support.oracles.every_type import MODES as ALL_MODES
from tests.support.oracles.every_type import SAMPLES, ops, options, tables
from walstream.errors import WalstreamError
from walstream.formats.debezium import DebeziumKey, EnvelopeEncoder, SinkTurn
from walstream.formats.debezium.connect import struct
from walstream.formats.debezium.connect_type import BY_NAME
from walstream.formats.debezium.connect_value import text_of
from walstream.formats.debezium.decode import EnvelopeDecoder, field_schemas
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.pg_type import ELEMENTS, PgType
from walstream.formats.debezium.types import ConnectTypes
from walstream.formats.encodings.avro import AvroEnvelope, AvroKey, avro_schema
from walstream.formats.encodings.avro.reader import AvroReader
from walstream.formats.encodings.avro.writers import writer
from walstream.op import Kind, ReplicationOp, Table

_NAMES = ["", *BY_NAME, "hstore", "sparsevec", "pair"]
_KNOWN = [text for sample in SAMPLES for text in sample.texts]


@given(
    oid=st.sampled_from(OIDS),
    name=st.sampled_from(_NAMES),
    modifier=st.sampled_from([-1, 0, 1, 3, 6, 10, 327_686, 198_658]),
    text=TEXTS | st.sampled_from(_KNOWN),
    mode=st.sampled_from(MODES),
)
def test_any_text_of_any_type_is_what_json_has(
    oid: int, name: str, modifier: int, text: str, mode: dict[str, Any]
) -> None:
    element = PgType(ELEMENTS[oid], "", modifier) if oid in ELEMENTS else None
    pg = PgType(oid, name, modifier, ("sad", "ok") if oid == 16500 else (), element)
    lost: list[str] = []
    found = ConnectTypes(DebeziumOptions("app", **mode)).of(pg, lambda _: None)
    if found is None:
        return
    try:
        written = writer(found, lost.append)(text)
        wanted = json.loads(found.render(text))
    except ValueError:  # 00, too, which PostgreSQL does not write
        return
    if written is None or lost:
        return
    whole = struct("a.N", ("x", replace(found.schema, optional=False)))
    reader = AvroReader(avro_schema(whole))
    assert reader.schema == json.loads(whole.json())
    (schema,) = reader.schema["fields"]
    value = reader.read(written, 0)["x"]
    assert comparable(meant(found.schema, value)) == comparable(
        meant(found.schema, wanted)
    )
    if "float" not in json.dumps(schema):  # JSON may have more digits of one
        assert value == wanted
        assert _text(value, schema) == _text(wanted, schema)


def _text(value: Any, schema: Any) -> Any:
    try:
        return text_of(value, schema)
    except (KeyError, TypeError, ValueError) as error:
        return type(error)


def _changes(table: Table) -> list[ReplicationOp]:
    made = []
    for op in ops(table):
        made += [op, replace(op, snapshot=True)]
        made.append(replace(op, kind=Kind.UPDATE, old=op.new))
        made.append(replace(op, kind=Kind.DELETE, old=op.new, new=None))
        made.append(replace(op, kind=Kind.TRUNCATE, new=None))
    return made


@pytest.mark.parametrize("mode", range(len(ALL_MODES)))
@pytest.mark.parametrize("number", range(3))
def test_ops_are_those_of_json_with_schemas(mode: int, number: int) -> None:
    table = tables()[number]
    told = options(mode, schemas=True, transaction_block=mode % 2 == 0)
    shown = EnvelopeEncoder(table, told, SinkTurn())
    envelope = AvroEnvelope(table, told, SinkTurn())
    keys = DebeziumKey(shown.columns, told, table.key)
    key = AvroKey(envelope.rows, told, table.key)
    reader, names = AvroReader(envelope.schema_text), AvroReader(key.schema_text).names
    columns = field_schemas(reader.schema)
    decoder = EnvelopeDecoder()
    headers = {"walstream-position": b"5/0"}
    for op in _changes(table):
        document = reader.read(envelope.encode(op), 0)
        named = () if op.kind is Kind.TRUNCATE else names  # which has no key
        found = decoder.read_document(document, columns, named, headers)
        wanted = decoder.read(shown.encode(op), keys.render(op), headers)
        assert found is not None
        assert found == wanted


@cache
def _sample() -> tuple[AvroReader, list[bytes]]:
    table = tables()[0]
    envelope = AvroEnvelope(table, options(1), SinkTurn())
    written = [envelope.encode(op) for op in _changes(table)]
    return AvroReader(envelope.schema_text), written


@given(st.data())
def test_no_damaged_record_raises_anything_else(data: st.DataObject) -> None:
    reader, written = _sample()
    record = bytearray(data.draw(st.sampled_from(written)))
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(0, len(record) - 1))
        match data.draw(st.sampled_from("crxi")):
            case "c":
                record = record[: place + 1]
            case "r":
                record[place : place + 4] = b"\xff" * 9
            case "x":
                record[place] ^= 1 << data.draw(st.integers(0, 7))
            case _:
                record[place:place] = data.draw(st.binary(max_size=12))
    _refused_or_read(reader, bytes(record))


@given(data=st.binary(max_size=400))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    _refused_or_read(_sample()[0], data)


def _refused_or_read(reader: AvroReader, data: bytes) -> None:
    decoder = EnvelopeDecoder()
    try:
        document = reader.read(data, 0)
        decoder.read_document(document, field_schemas(reader.schema), ("id",))
    except WalstreamError:
        pass


_WORDS = st.sampled_from(
    [
        *("null", "boolean", "int", "long", "float", "double", "bytes", "string"),
        *("record", "array", "map", "enum", "fixed", "R", "a.R", "E"),
    ]
)
_ATTRIBUTES = st.sampled_from(
    [
        *("type", "name", "namespace", "items", "values", "symbols", "size", "fields"),
        *("default", "connect.name", "connect.parameters", "connect.default"),
        *("connect.type", "connect.version", "logicalType", "scale", "precision"),
    ]
)
_SCHEMAS = st.recursive(
    _WORDS | st.integers(-2, 3) | st.none() | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(_ATTRIBUTES, inner, max_size=5)
        | st.fixed_dictionaries(
            {
                "type": st.just("record"),
                "name": st.sampled_from(["R", "a.R", "E"]),
                "fields": st.lists(
                    st.fixed_dictionaries(
                        {"name": st.sampled_from("abc"), "type": inner | _WORDS},
                        optional={"default": inner},
                    ),
                    max_size=3,
                ),
            }
        )
        | st.fixed_dictionaries({"type": st.just("array"), "items": inner | _WORDS})
        | st.fixed_dictionaries({"type": st.just("map"), "values": inner | _WORDS})
    ),
    max_leaves=12,
)


@given(told=_SCHEMAS, data=st.binary(max_size=60))
def test_no_schema_raises_anything_else(told: Any, data: bytes) -> None:
    try:
        reader = AvroReader(json.dumps(told))
        _ = reader.names
        json.dumps(reader.read(data, 0))
    except WalstreamError:
        pass


def test_a_schema_of_doubling_types_takes_no_memory_for_nothing() -> None:
    types: list[Any] = []
    for number in range(40):
        inner = f"T{number - 1}" if number else "null"
        fields = [{"name": one, "type": ["null", inner]} for one in "ab"]
        types.append({"type": "record", "name": f"T{number}", "fields": fields})
    first = types[0]
    first["fields"] = []
    told = {
        "type": "record",
        "name": "All",
        "fields": [
            {"name": f"f{number}", "type": ["null", one]}
            for number, one in enumerate(types)
        ],
    }
    tracemalloc.start()
    reader = AvroReader(json.dumps(told))
    for data in (b"\0" * 40, b"\2" * 1000, b"\0" * 39 + b"\2" * 100_000):
        try:
            reader.read(data, 0)
        except WalstreamError:
            continue
    assert tracemalloc.get_traced_memory()[1] < 30_000_000
    tracemalloc.stop()
