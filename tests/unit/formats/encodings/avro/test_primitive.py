"""The primitive types, as the specification of Avro writes them."""

import pytest

from walstream.formats.encodings.avro import primitive


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-64, "7f"),
        (64, "8001"),
        (8191, "fe7f"),
        (8192, "808001"),
        (-8193, "818001"),
        (2**20 - 1, "feff7f"),
        (2**20, "80808001"),
        (2**27 - 1, "feffff7f"),
        (2**27, "8080808001"),
        (-(2**34), "ffffffff7f"),
        (2**34, "808080808001"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_a_long_is_zigzag_in_groups_of_seven_bits(number: int, written: str) -> None:
    assert primitive.long(number).hex() == written


def test_a_long_is_right_on_both_sides_of_each_power_of_two() -> None:
    for bits in range(63):
        for number in (2**bits - 1, 2**bits, -(2**bits), -(2**bits) - 1):
            rest, groups = (number << 1) ^ (number >> 63), bytearray()
            while rest >= 128:
                groups.append(rest & 127 | 128)
                rest >>= 7
            groups.append(rest)
            assert primitive.long(number) == groups


@pytest.mark.parametrize("size", [0, 1, 63, 64, 8191, 8192])
def test_a_text_has_its_size_in_bytes_before_it(size: int) -> None:
    assert primitive.text("x" * size) == primitive.long(size) + b"x" * size
    assert primitive.text("é") == b"\x04\xc3\xa9"


def test_floating_point_numbers_are_little_endian() -> None:
    assert primitive.double(1.5).hex() == "000000000000f83f"
    assert primitive.single(1.5).hex() == "0000c03f"
    with pytest.raises(ValueError, match="not a number"):
        primitive.single(1e300)
