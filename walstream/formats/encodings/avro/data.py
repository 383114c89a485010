"""Avro's binary data, read from its beginning on: what it lacks is an error.

Nothing is made before the bytes of it are there, so that no data takes more memory than
it has bytes, times a constant.
"""

from struct import Struct
from typing import Final

from walstream.errors import WalstreamError

_FLOAT: Final = Struct("<f")
_DOUBLE: Final = Struct("<d")
_LAST_SHIFT: Final = 63  # of the tenth byte, which has one bit of 64
_LARGEST: Final = (1 << 64) - 1
_DEEPEST: Final = 100  # records, arrays and maps within each other
_MORE: Final = 128


class BadData(WalstreamError):
    """Bytes that are not what their schema says."""


class AvroData:
    """One record, as far as it was read."""

    __slots__ = ("_depth", "_end", "at", "bytes")

    def __init__(self, data: bytes, start: int = 0) -> None:
        self.bytes = data
        self.at = start
        self._end = len(data)
        self._depth = 0

    def refused(self, reason: str) -> BadData:
        """Return the error: it tells where, and no value."""
        return BadData(f"not the Avro data of its schema: {reason} at byte {self.at}")

    def byte(self) -> int:
        at = self.at
        if at >= self._end:
            raise self.refused("it ends")
        self.at = at + 1
        return self.bytes[at]

    def long(self) -> int:
        """Read an int or a long."""
        at = self.at
        if at < self._end and (first := self.bytes[at]) < _MORE:
            self.at = at + 1
            return (first >> 1) ^ -(first & 1)
        return self._long()

    def _long(self) -> int:
        """Read one of several bytes."""
        more = self.byte()
        number, shift = more & 127, 7
        while more >= _MORE:
            more = self.byte()
            number |= (more & 127) << shift
            if shift == _LAST_SHIFT and (more >= _MORE or number > _LARGEST):
                raise self.refused("a number of more than 64 bits")
            shift += 7
        return (number >> 1) ^ -(number & 1)

    def take(self, size: int) -> bytes:
        """Read so many bytes."""
        at = self.at
        if not 0 <= size <= self._end - at:
            raise self.refused("a length that it does not have")
        self.at = at + size
        return self.bytes[at : at + size]

    def raw(self) -> bytes:
        """Read bytes."""
        return self.take(self.long())

    def text(self) -> str:
        """Read a string."""
        size = self.long()
        at = self.at
        end = at + size
        if size < 0 or end > self._end:
            raise self.refused("a length that it does not have")
        self.at = end
        try:
            return self.bytes[at:end].decode()
        except UnicodeDecodeError:
            raise self.refused("a string that is not UTF-8, before it,") from None

    def single(self) -> float:
        """Read a float."""
        (number,) = _FLOAT.unpack(self.take(4))
        return float(number)

    def double(self) -> float:
        """Read a double."""
        (number,) = _DOUBLE.unpack(self.take(8))
        return float(number)

    def count(self) -> int:
        """Read how many items the next block has, of at least a byte each; 0: none."""
        count = self.long()
        if count < 0:  # a block that tells its size
            count = -count
            if not 0 <= self.long() <= self._end - self.at:
                raise self.refused("a block that it does not have")
        if count > self._end - self.at:
            raise self.refused("more items than bytes")
        return count

    def enter(self) -> None:
        """Begin what holds others."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.refused("values within values, too deep,")

    def leave(self) -> None:
        self._depth -= 1

    def end(self) -> None:
        """Raise BadData if there is more."""
        if self.at != self._end:
            raise self.refused("it has more data than its schema")
