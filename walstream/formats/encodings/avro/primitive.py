"""The primitive types of Avro's binary encoding."""

from struct import Struct
from typing import Final

_ONE: Final = tuple(bytes((number,)) for number in range(128))
_TWO: Final = 1 << 14  # what so many bytes have no room for
_FOUR: Final = 1 << 28
_FIVE: Final = 1 << 35
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
    if rest < 128:  # noqa: PLR2004 - seven bits a byte
        return _ONE[rest]
    if rest < _TWO:
        return bytes((rest & 127 | 128, rest >> 7))
    if rest < _FIVE and rest >= _FOUR:  # most LSNs
        return bytes(
            (
                rest & 127 | 128,
                rest >> 7 & 127 | 128,
                rest >> 14 & 127 | 128,
                rest >> 21 & 127 | 128,
                rest >> 28,
            )
        )
    written = bytearray()
    while rest >= 128:  # noqa: PLR2004 - likewise
        written.append(rest & 127 | 128)
        rest >>= 7
    written.append(rest)
    return bytes(written)


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
