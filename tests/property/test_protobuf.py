"""Protobuf of any text says what JSON of it says, to Google's library and to ours."""

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.test_debezium import MODES, OIDS, TEXTS
from tests.support.oracles.avro_values import comparable
from tests.support.oracles.every_type import MODES as ALL_MODES
from tests.support.oracles.every_type import SAMPLES, ops, options, tables
from tests.support.oracles.protobuf_values import meant, read
from walstream.errors import WalstreamError
from walstream.formats.debezium import SinkTurn
from walstream.formats.debezium.connect import Schema, struct
from walstream.formats.debezium.connect_type import BY_NAME
from walstream.formats.debezium.connect_value import text_of
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.pg_type import ELEMENTS, PgType
from walstream.formats.debezium.types import ConnectTypes
from walstream.formats.encodings.protobuf import number, proto_shape
from walstream.formats.encodings.protobuf.envelope import ProtoEnvelope
from walstream.formats.encodings.protobuf.plan import FieldPlan, type_plan
from walstream.formats.encodings.protobuf.reader import ProtoReader
from walstream.formats.encodings.protobuf.writers import writer

_NAMES = ["", *BY_NAME, "hstore", "sparsevec", "pair"]
_KNOWN = [text for sample in SAMPLES for text in sample.texts]


@given(
    oid=st.sampled_from(OIDS),
    name=st.sampled_from(_NAMES),
    modifier=st.sampled_from([-1, 0, 1, 3, 6, 10, 327_686, 198_658]),
    text=TEXTS | st.sampled_from(_KNOWN),
    mode=st.sampled_from(MODES),
)
def test_any_text_of_any_type_says_what_json_says_or_is_refused(
    oid: int, name: str, modifier: int, text: str, mode: dict[str, Any]
) -> None:
    element = PgType(ELEMENTS[oid], "", modifier) if oid in ELEMENTS else None
    pg = PgType(oid, name, modifier, ("sad", "ok") if oid == 16500 else (), element)
    found = ConnectTypes(DebeziumOptions("app", **mode)).of(pg, lambda _: None)
    if found is None:
        return
    schema = struct("a.N", ("x", replace(found.schema, optional=True)))
    file = number(proto_shape(schema), [])
    (field,) = file.first.fields
    write = writer(found, field.type, [file.first])
    try:
        shown = json.loads(found.render(text))
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 - whoever refuses it
            write(text)
        return
    try:
        written = write(text)
    except ValueError as error:
        refusal = str(error)
    else:
        refusal = ""
    if refusal:
        assert refusal in {"not an integer of this size", "not a number"}
    elif written is None:
        assert shown is None
    else:
        plan = type_plan(found.schema, field.type, [file.first])
        data = FieldPlan("x", field, plan, optional=True).of(written)
        wanted = comparable(meant(schema, {"x": shown}))
        assert read(schema, file.text(), data) == wanted
        compare(found.schema, file.text(), data, shown)


def compare(schema: Schema, text: str, data: bytes, shown: Any) -> None:
    """Compare what our reader reads with JSON, as texts of PostgreSQL."""
    reader = ProtoReader(text)
    (told,) = reader.schema["fields"]
    value = reader.read(b"\0" + data, 0)["x"]
    wanted = json.loads(schema.json())
    # JSON may have more digits of a float; those of a decimal are PostgreSQL's, and
    # labels of enums are in no text
    if "float" in json.dumps(wanted):
        return
    if not wanted.get("items", wanted).get("name", "").endswith(("Decimal", "Enum")):
        assert _text(value, told) == _text(shown, wanted)


def _text(value: Any, schema: Any) -> Any:
    try:
        return text_of(value, schema)
    except (KeyError, TypeError, ValueError) as error:
        return type(error)


@cache
def _written() -> list[tuple[ProtoReader, bytes]]:
    """Return records of all types, and what reads them."""
    found = []
    for mode in range(len(ALL_MODES)):
        for table in tables():
            made = ProtoEnvelope(table, options(mode), SinkTurn())
            text = number(proto_shape(made.schema), []).text()
            made.use(text)
            reader = ProtoReader(text)
            found += [(reader, b"\0" + made.encode(op)) for op in ops(table)]
    return found


@given(data=st.data())
def test_a_damaged_record_is_refused_or_read(data: st.DataObject) -> None:
    """Nothing else is raised, whatever the bytes are."""
    reader, whole = data.draw(st.sampled_from(_written()))
    place = data.draw(st.integers(0, len(whole) - 1))
    byte = data.draw(st.binary(max_size=3))
    damaged = whole[:place] + byte + whole[place + data.draw(st.integers(0, 5)) :]
    try:
        found = reader.read(damaged, 0)
    except WalstreamError:
        return
    assert isinstance(found, dict)


@given(data=st.binary(max_size=40))
def test_any_bytes_are_refused_or_read(data: bytes) -> None:
    reader, _ = _written()[0]
    try:
        assert isinstance(reader.read(data, 0), dict)
    except WalstreamError:
        return
