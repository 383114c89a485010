"""Avro's binary data: each length is looked at before anything is made of it."""

import tracemalloc

import pytest

from walstream.formats.encodings.avro import primitive
from walstream.formats.encodings.avro.data import AvroData, BadData

SMALLEST, LARGEST = -(1 << 63), (1 << 63) - 1


@pytest.mark.parametrize("number", [0, 1, -1, 63, 64, -65, 300, SMALLEST, LARGEST])
def test_a_long_comes_back(number: int) -> None:
    data = AvroData(primitive.long(number))
    assert data.long() == number
    data.end()


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"\xff" * 9, b"\xff" * 10, b"\xff" * 9 + b"\x02"]
)
def test_a_long_that_ends_or_is_too_long_is_refused(data: bytes) -> None:
    with pytest.raises(BadData, match=r"it ends|64 bits"):
        AvroData(data).long()


@pytest.mark.parametrize("size", [1, 5, 1 << 40, LARGEST, -1, SMALLEST])
def test_a_length_beyond_the_end_takes_no_memory(size: int) -> None:
    data = AvroData(primitive.long(size))
    tracemalloc.start()
    with pytest.raises(BadData, match="a length"):
        data.raw()
    with pytest.raises(BadData, match=r"items|block|it ends"):
        AvroData(primitive.long(size)).count()
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()


def test_a_block_may_tell_its_size() -> None:
    assert AvroData(primitive.long(-2) + primitive.long(2) + b"\0\0").count() == 2
    with pytest.raises(BadData, match="a block"):
        AvroData(primitive.long(-2) + primitive.long(3) + b"\0\0").count()


def test_a_text_is_utf_8() -> None:
    assert AvroData(primitive.text("é")).text() == "é"
    with pytest.raises(BadData, match="UTF-8"):
        AvroData(primitive.raw(b"\xff")).text()


def test_what_goes_on_is_refused() -> None:
    with pytest.raises(BadData, match="more data than its schema at byte 0"):
        AvroData(b"\0").end()


def test_depth_has_an_end() -> None:
    data = AvroData(b"")
    for _ in range(100):
        data.enter()
    with pytest.raises(BadData, match="too deep"):
        data.enter()
