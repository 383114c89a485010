"""Records of a JSON Schema fit it, and are read as those of JSON with schemas."""

import json
from dataclasses import replace
from functools import cache
from typing import Any, Final

import jsonschema
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.test_debezium import MODES, OIDS, TEXTS
from tests.support.oracles.every_type import MODES as ALL_MODES
from tests.support.oracles.every_type import SAMPLES, ops, options, tables
from walstream.errors import WalstreamError
from walstream.formats.debezium import DebeziumRecords, SinkTurn
from walstream.formats.debezium.connect import struct
from walstream.formats.debezium.connect_type import BY_NAME
from walstream.formats.debezium.connect_value import text_of
from walstream.formats.debezium.decode import EnvelopeDecoder, field_schemas
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.pg_type import ELEMENTS, PgType
from walstream.formats.debezium.types import ConnectTypes
from walstream.formats.encodings.json_schema.reader import JsonSchemaReader
from walstream.formats.encodings.json_schema.record import JsonSchemaRecords
from walstream.formats.encodings.json_schema.schema_text import json_schema
from walstream.formats.encodings.wire import HEAD, head
from walstream.op import Kind, ReplicationOp, Table

_NAMES: Final = ["", *BY_NAME, "hstore", "sparsevec", "pair"]
_KNOWN: Final = [text for sample in SAMPLES for text in sample.texts]
_NO_NUMBERS: Final = {"NaN", "Infinity", "-Infinity"}
_HEADERS: Final = {"walstream-position": b"5/0"}


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
@pytest.mark.parametrize("unwrapped", [False, True])
def test_each_record_fits_its_schema(mode: int, number: int, unwrapped: bool) -> None:
    table = tables()[number]
    told = options(mode, deletes="rewrite", add_fields=("op", "source.ts_ms", "lsn"))
    records = JsonSchemaRecords(table, told, SinkTurn(), unwrapped=unwrapped)
    parts = dict(records.framed(table.key))
    for part in parts.values():
        part.head = head(1)
    value, key = [
        jsonschema.Draft7Validator(json.loads(parts[one].schema_text))
        for one in (False, True)
    ]
    for op in _changes(table):
        if op.kind is Kind.TRUNCATE and unwrapped:
            continue
        written = records.encode(op)
        assert written[:HEAD] == head(1)
        value.validate(json.loads(written[HEAD:]))
        written_key = records.key(table.key).render(op)
        if written_key is not None:
            assert written_key[:HEAD] == head(1)
            key.validate(json.loads(written_key[HEAD:]))


@pytest.mark.parametrize("mode", range(len(ALL_MODES)))
@pytest.mark.parametrize("number", range(3))
def test_ops_are_those_of_json_with_schemas(mode: int, number: int) -> None:
    table = tables()[number]
    told = options(mode, schemas=True, transaction_block=mode % 2 == 0)
    shown = DebeziumRecords(table, told, SinkTurn())
    records = JsonSchemaRecords(table, told, SinkTurn())
    parts = dict(records.framed(table.key))
    for part in parts.values():
        part.head = head(1)
    reader = JsonSchemaReader(parts[False].schema_text)
    names = JsonSchemaReader(parts[True].schema_text).names
    assert names == ("id",)
    columns = field_schemas(reader.schema)
    decoder = EnvelopeDecoder()
    for op in _changes(table):
        document = reader.read(records.encode(op))
        named = () if op.kind is Kind.TRUNCATE else names  # which has no key
        found = decoder.read_document(document, columns, named, _HEADERS)
        key = shown.key(table.key).render(op)
        wanted = decoder.read(shown.encode(op), key, _HEADERS)
        assert found is not None
        assert found == wanted


@given(
    oid=st.sampled_from(OIDS),
    name=st.sampled_from(_NAMES),
    modifier=st.sampled_from([-1, 0, 1, 3, 6, 10, 327_686, 198_658]),
    text=TEXTS | st.sampled_from(_KNOWN),
    mode=st.sampled_from(MODES),
)
def test_any_text_of_any_type_fits_and_is_what_json_has(
    oid: int, name: str, modifier: int, text: str, mode: dict[str, Any]
) -> None:
    element = PgType(ELEMENTS[oid], "", modifier) if oid in ELEMENTS else None
    pg = PgType(oid, name, modifier, ("sad", "ok") if oid == 16500 else (), element)
    told, lost = DebeziumOptions("app", **mode), list[str]()
    plain = ConnectTypes(told).of(pg, lambda _: None)
    found = ConnectTypes(replace(told, validated=True)).of(pg, lost.append)
    if found is None or plain is None:
        assert found is plain
        return
    assert found.schema == plain.schema
    try:
        wanted = json.loads(plain.render(text))
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 - whoever refuses it
            found.render(text)
        return
    written = found.render(text)
    if written == "null":
        assert wanted is None
        return
    whole = struct("a.N", ("x", replace(found.schema, optional=False)))
    schema = json_schema(whole)
    reader = JsonSchemaReader(schema)
    assert reader.schema == json.loads(whole.json())
    record = f'{{"x":{written}}}'.encode()
    value = reader.read(head(1) + record)["x"]
    if not lost:
        assert value == wanted
        (field,) = reader.schema["fields"]
        assert _text(value, field) == _text(wanted, field)
    if not _has_no_number(value):
        jsonschema.validate(json.loads(record), json.loads(schema))


def _has_no_number(value: Any) -> bool:
    """Return whether a float is a word, which is no number to a validator."""
    if isinstance(value, list):
        return any(map(_has_no_number, value))
    if isinstance(value, dict):
        return any(map(_has_no_number, value.values()))
    return value in _NO_NUMBERS


def _text(value: Any, schema: Any) -> Any:
    try:
        return text_of(value, schema)
    except (KeyError, TypeError, ValueError) as error:
        return type(error)


@cache
def _sample() -> tuple[JsonSchemaReader, list[bytes]]:
    table = tables()[0]
    records = JsonSchemaRecords(table, options(1), SinkTurn())
    parts = dict(records.framed(table.key))
    parts[False].head = head(1)
    written = [records.encode(op) for op in _changes(table)]
    return JsonSchemaReader(parts[False].schema_text), written


@given(st.data())
def test_no_damaged_record_raises_anything_else(data: st.DataObject) -> None:
    reader, written = _sample()
    record = bytearray(data.draw(st.sampled_from(written)))
    for _ in range(data.draw(st.integers(1, 8))):
        place = data.draw(st.integers(HEAD, len(record) - 1))
        match data.draw(st.sampled_from("cxi")):
            case "c":
                record = record[: place + 1]
            case "x":
                record[place] ^= 1 << data.draw(st.integers(0, 7))
            case _:
                record[place:place] = data.draw(
                    st.sampled_from(b'{}[]",:0nt').map(lambda one: bytes([one]))
                )
    _refused_or_read(reader, bytes(record))


@given(data=st.binary(max_size=400))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    _refused_or_read(_sample()[0], data)


def _refused_or_read(reader: JsonSchemaReader, data: bytes) -> None:
    decoder = EnvelopeDecoder()
    try:
        document = reader.read(data)
        decoder.read_document(document, field_schemas(reader.schema), ("id",))
    except WalstreamError:
        pass


_WORDS: Final = st.sampled_from(
    ["null", "boolean", "integer", "number", "string", "object", "array", "map", "#"]
)
_ATTRIBUTES: Final = st.sampled_from(
    [
        *("type", "title", "properties", "items", "oneOf", "anyOf", "enum", "$ref"),
        *("default", "description", "additionalProperties", "key", "value"),
        *("connect.index", "connect.type", "connect.version", "connect.parameters"),
    ]
)
_SCHEMAS: Final = st.recursive(
    _WORDS | st.integers(-2, 3) | st.none() | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(_ATTRIBUTES, inner, max_size=5)
        | st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.dictionaries(
                    st.sampled_from("abc"), inner, max_size=3
                ),
            },
            optional={"connect.type": st.just("map"), "additionalProperties": inner},
        )
        | st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={"connect.type": st.just("map")},
        )
        | st.fixed_dictionaries(
            {
                "type": st.just("number"),
                "title": st.just("org.apache.kafka.connect.data.Decimal"),
                "connect.type": st.just("bytes"),
            },
            optional={"connect.parameters": st.just({"scale": "2"})},
        )
        | st.fixed_dictionaries({"oneOf": st.lists(inner, max_size=3)})
    ),
    max_leaves=12,
)
_VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "key", "value"]), inner)
    ),
    max_leaves=8,
)


@given(told=_SCHEMAS, value=_VALUES)
def test_no_schema_raises_anything_else(told: Any, value: Any) -> None:
    try:
        reader = JsonSchemaReader(json.dumps(told))
        _ = reader.names
        orjson.dumps(reader.read(head(1) + json.dumps(value).encode()))
    except WalstreamError:
        pass
