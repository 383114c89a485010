"""Avro of any text says what JSON of it says, to an independent reader."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.test_debezium import MODES, OIDS, TEXTS
from tests.support.oracles.avro_values import comparable, meant, said
from tests.support.oracles.debezium_avro import read
from tests.support.oracles.every_type import SAMPLES
from walstream.formats.debezium.connect import Schema, struct
from walstream.formats.debezium.connect_type import BY_NAME
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.pg_type import ELEMENTS, PgType
from walstream.formats.debezium.types import ConnectTypes
from walstream.formats.encodings.avro import avro_schema, primitive
from walstream.formats.encodings.avro.tree import document
from walstream.formats.encodings.avro.writers import writer

_NAMES = ["", *BY_NAME, "hstore", "sparsevec", "pair"]
_SIZES = {"int16": 15, "int32": 31, "int64": 63}
_KNOWN = [text for sample in SAMPLES for text in sample.texts]


@given(number=st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_long_comes_back(number: int) -> None:
    assert read('"long"', primitive.long(number)) == number


@given(text=TEXTS)
def test_a_text_comes_back(text: str) -> None:
    assert read('"string"', primitive.text(text)) == text


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
    lost: list[str] = []
    found = ConnectTypes(DebeziumOptions("app", **mode)).of(pg, lambda _: None)
    if found is None:
        return
    write = writer(found, lost.append)
    try:
        shown = found.render(text)
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 - whoever refuses it
            write(text)
        return
    refusal = ""
    written = None
    try:
        written = write(text)
    except ValueError as error:
        refusal = str(error)
    if refusal:
        assert refusal in {"not an integer of this size", "not a number"}
    elif written is None:
        assert shown == "null"
    elif not lost:
        assert said(found, written) == said(found, None, shown)


@given(
    values=st.lists(
        st.none()
        | st.sampled_from(["0", "1"])
        | st.integers(-(1 << 31), (1 << 31) - 1).map(str),
        max_size=4,
    ),
    turned=st.booleans(),
)
def test_nulls_of_a_record_are_nulls_whatever_the_default(
    values: list[str | None], turned: bool
) -> None:
    kind = Schema("int32", optional=True, default="1" if turned else "")
    schema = struct("a.N", *((f"f{n}", kind) for n in range(len(values))))
    pairs = {f"f{n}": one and int(one) for n, one in enumerate(values)}
    shown = ",".join(f'"{n}":{"null" if v is None else v}' for n, v in pairs.items())
    found = read(avro_schema(schema), document(schema, f"{{{shown}}}"))
    assert comparable(found) == comparable(meant(schema, pairs))
