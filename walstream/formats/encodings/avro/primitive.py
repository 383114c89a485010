"""The primitive types of Avro's binary encoding."""

from struct import Struct
from typing import Final

_ONE: Final = tuple(bytes((number,)) for number in range(128))
_TWO: Final = 1 << 14  # what so many bytes have no room for
_THREE: Final = 1 << 21
_FOUR: Final = 1 << 28
_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")

NULL: Final = b"\0"  # of a union whose first branch is null
VALUE: Final = b"\2"
TURNED_NULL: Final = b"\2"  # of a union whose second branch is null
TURNED_VALUE: Final = b"\0"
FALSE: Final = b"\0"
TRUE: Final = b"\1"
END: Final = b"\0"  # of an array or a map


def long(value: int) -> bytes:
    """Write an int or a long of at most 64 bits, which the caller has checked."""
    rest = value << 1 if value >= 0 else ~(value << 1)
    return _ONE[rest] if rest < 128 else _groups(rest)  # noqa: PLR2004 - seven bits


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
    if high < 128:  # noqa: PLR2004 - likewise
        return (low | high << 32).to_bytes(5, "little")
    low |= (high & 127 | 128) << 32
    if high < _TWO:
        return (low | high >> 7 << 40).to_bytes(6, "little")
    low |= (high >> 7 & 127 | 128) << 40
    high >>= 14
    last = _ONE[high] if high < 128 else _groups(high)  # noqa: PLR2004 - likewise
    return low.to_bytes(6, "little") + last


def raw(value: bytes) -> bytes:
    """Write bytes."""
    size = len(value)
    return (_ONE[size << 1] if size < 64 else long(size)) + value  # noqa: PLR2004


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
