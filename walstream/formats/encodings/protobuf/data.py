"""Protobuf's binary data, read from its beginning on: what it lacks is an error."""

from struct import Struct
from typing import Final

from walstream.errors import WalstreamError

_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")
_LAST_SHIFT: Final = 63  # of the tenth byte, which has one bit of 64
_LARGEST: Final = (1 << 64) - 1
_MORE: Final = 128
_VARINT: Final = 0  # wire types
_FIXED64: Final = 1
_LENGTH: Final = 2
_FIXED32: Final = 5


class BadProtoData(WalstreamError):
    """Bytes that are not what their schema says."""


class ProtoData:
    """One message, as far as it was read."""

    __slots__ = ("_end", "at", "bytes")

    def __init__(self, data: bytes, start: int = 0, end: int | None = None) -> None:
        self.bytes = data
        self.at = start
        self._end = len(data) if end is None else end

    def refused(self, reason: str) -> BadProtoData:
        """Return the error: it tells where, and no value."""
        return BadProtoData(
            f"not the protobuf data of its schema: {reason} at byte {self.at}"
        )

    @property
    def more(self) -> bool:
        """Whether there is another field."""
        return self.at < self._end

    def varint(self) -> int:
        """Read a number without a sign."""
        number = shift = 0
        while True:
            at = self.at
            if at >= self._end:
                raise self.refused("it ends")
            byte = self.bytes[at]
            self.at = at + 1
            number |= (byte & 127) << shift
            if shift == _LAST_SHIFT and (byte >= _MORE or number > _LARGEST):
                raise self.refused("a number of more than 64 bits")
            if byte < _MORE:
                return number
            shift += 7

    def tag(self) -> tuple[int, int]:
        """Read a field's number, and its wire type."""
        found = self.varint()
        return found >> 3, found & 7

    def take(self, size: int) -> bytes:
        """Read so many bytes."""
        at = self.at
        if not 0 <= size <= self._end - at:
            raise self.refused("a length that it does not have")
        self.at = at + size
        return self.bytes[at : at + size]

    def raw(self) -> bytes:
        """Read bytes behind their length."""
        return self.take(self.varint())

    def value(self, wire: int) -> int | bytes:
        """Read a field's value, as far as its wire type tells what it is."""
        if wire == _VARINT:
            return self.varint()
        if wire == _LENGTH:
            return self.raw()
        if wire == _FIXED64:
            return self.take(8)
        if wire == _FIXED32:
            return self.take(4)
        raise self.refused("a group, or no field")


def single(value: bytes) -> float:
    """Read a float."""
    (number,) = _FLOAT.unpack(value)
    return float(number)


def double(value: bytes) -> float:
    """Read a double."""
    (number,) = _DOUBLE.unpack(value)
    return float(number)
