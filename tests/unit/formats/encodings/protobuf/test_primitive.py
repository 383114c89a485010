"""Primitive types, as Google's library writes them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.oracles.protobuf_values import message_class
from walstream.formats.encodings.protobuf import primitive

TEXT = 'syntax = "proto3"; message M { optional %s x = 1; }'


def theirs(kind: str, value: object) -> bytes:
    made = message_class(TEXT % kind)(x=value)
    return bytes(made.SerializeToString())


@given(number=st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_number(number: int) -> None:
    assert b"\x08" + primitive.varint(number) == theirs("int64", number)


@given(number=st.integers(1, 70).map(lambda bits: (1 << bits) - 1))
def test_a_number_of_each_length(number: int) -> None:
    number &= (1 << 64) - 1
    assert b"\x08" + primitive.varint(number) == theirs("uint64", number)


@given(value=st.text(max_size=300))
def test_a_text(value: str) -> None:
    assert b"\x0a" + primitive.text(value) == theirs("string", value)


@given(value=st.floats())
def test_a_double(value: float) -> None:
    assert b"\x09" + primitive.double(value) == theirs("double", value)


@given(value=st.floats(width=32))
def test_a_float(value: float) -> None:
    assert b"\x0d" + primitive.single(value) == theirs("float", value)


def test_tags_and_bytes() -> None:
    assert primitive.tag(1, primitive.LENGTH) + primitive.raw(b"\0" * 200) == theirs(
        "bytes", b"\0" * 200
    )
    assert primitive.tag(20_000, primitive.VARINT) == b"\x80\xe2\x09"
    with pytest.raises(ValueError, match="not a number"):
        primitive.single(1e300)
