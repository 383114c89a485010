"""The primitive types of protobuf's wire format."""

from struct import Struct
from typing import Final

_ONE: Final = tuple(bytes((number,)) for number in range(128))
_TWO: Final = 1 << 14  # what so many bytes have no room for
_THREE: Final = 1 << 21
_FOUR: Final = 1 << 28
_UNSIGNED: Final = (1 << 64) - 1
_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")

VARINT: Final = 0  # wire types
FIXED64: Final = 1
LENGTH: Final = 2
FIXED32: Final = 5

ZERO: Final = b"\0"  # a number, a length: what proto3 leaves out
FALSE: Final = b"\0"
TRUE: Final = b"\1"


def tag(number: int, wire: int) -> bytes:
    """Return what stands before a field."""
    return varint(number << 3 | wire)


def varint(value: int) -> bytes:
    """Write an int32 or an int64: negative ones have ten bytes."""
    if value < 0:
        value &= _UNSIGNED
    return _ONE[value] if value < 128 else _groups(value)  # noqa: PLR2004 - seven bits


def _groups(rest: int) -> bytes:
    """Write groups of seven bits, the lowest first: all but the last have another."""
    if rest < _TWO:
        return (rest & 127 | rest >> 7 << 8 | 128).to_bytes(2, "little")
    low = rest & 127 | (rest >> 7 & 127) << 8
    if rest < _THREE:
        return (low | rest >> 14 << 16 | 0x8080).to_bytes(3, "little")
    low |= (rest >> 14 & 127) << 16
    if rest < _FOUR:
        return (low | rest >> 21 << 24 | 0x808080).to_bytes(4, "little")
    low |= (rest >> 21 & 127) << 24 | 0x80808080
    high = rest >> 28
    last = _ONE[high] if high < 128 else _groups(high)  # noqa: PLR2004 - likewise
    return low.to_bytes(4, "little") + last


def raw(value: bytes) -> bytes:
    """Write bytes, or a message, behind its length."""
    size = len(value)
    return (_ONE[size] if size < 128 else _groups(size)) + value  # noqa: PLR2004


def text(value: str) -> bytes:
    """Write a string."""
    return raw(value.encode())


def double(value: float) -> bytes:
    """Write a double."""
    return _DOUBLE.pack(value)


def single(value: float) -> bytes:
    """Write a float; raise ValueError for one that is too large."""
    try:
        return _FLOAT.pack(value)
    except OverflowError:
        raise ValueError("not a number") from None
