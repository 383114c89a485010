"""Avro's types as values of Connect's JSON."""

import math
import struct
from typing import Any

import pytest

from walstream.formats.encodings.avro import primitive, values
from walstream.formats.encodings.avro.data import AvroData, BadData
from walstream.formats.encodings.avro.values import Read


def read(how: Read, data: bytes) -> Any:
    rest = AvroData(data)
    found = how(rest)
    rest.end()
    return found


@pytest.mark.parametrize(
    ("shown", "number"),
    [
        (1.1, 1.1),
        (0.1, 0.1),
        (16777216.0, 16777216.0),
        (3.4028235e38, 3.4028235e38),
        (1.1754944e-38, 1.1754944e-38),
        (1e-45, 1.4e-45),
        (-0.0, -0.0),
        (1.0000001, 1.0000001),
        (8.589935e9, 8589934592.0),
    ],
)
def test_a_float_has_the_fewest_digits(shown: float, number: float) -> None:
    found = read(values.single, primitive.single(number))
    assert (found, math.copysign(1, found)) == (shown, math.copysign(1, shown))
    assert struct.pack("f", found) == struct.pack("f", number)


@pytest.mark.parametrize(
    ("number", "word"),
    [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")],
)
def test_what_json_has_no_number_for_is_a_word(number: float, word: str) -> None:
    assert read(values.single, primitive.single(number)) == word
    assert read(values.double, primitive.double(number)) == word


def test_a_small_integer_is_one() -> None:
    assert read(values.integer(15), primitive.long(-32768)) == -32768
    with pytest.raises(BadData, match="16 bits"):
        read(values.integer(15), primitive.long(32768))


def test_a_boolean_is_a_byte() -> None:
    assert [read(values.boolean, b) for b in (b"\0", b"\1")] == [False, True]
    with pytest.raises(BadData, match="boolean"):
        read(values.boolean, b"\2")


@pytest.mark.parametrize("data", [b"\4", b"\1", b"\x80\x80\x80\x80\x01"])
def test_a_branch_that_is_not_there_is_refused(data: bytes) -> None:
    for how in (
        values.optional(values.text, null_first=True),
        values.optional(values.text, null_first=False),
        values.union(["a", "b"], [values.text, values.int64]),
        values.enum(["a", "b"]),
    ):
        with pytest.raises(BadData, match="no such"):
            read(how, data)


def test_several_blocks_are_one_array() -> None:
    data = b"\2\2\3\4\4\6\0"  # an item, then two in a block that tells its size
    assert read(values.array(values.int64), data) == [1, 2, 3]


def test_a_union_is_a_struct_of_its_branches() -> None:
    how = values.union(["a", None], [values.int64, values.null])
    assert read(how, b"\0\2") == {"a": 1}
    assert read(how, b"\2") is None
    assert read(values.pairs(values.int64, values.text), b"\2\2\2x\0") == [[1, "x"]]
    assert read(values.mapping(values.text, values.int64), b"\2\2x\2\0") == {"x": 1}
    assert read(values.fixed(2), b"ab") == "YWI="
