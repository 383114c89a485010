"""Reads one message from front to back; every length is checked before it is used.

The message ends with the bytes that it is in: what was read before it, a frame's
header, need not be cut off. Raises Malformed with the reason; `decode` alone turns that
into a DecodeError.
"""

from struct import Struct
from typing import TYPE_CHECKING, Final

from walstream.row import UNCHANGED, Value

if TYPE_CHECKING:  # a number of the machine, where this is compiled; else an int
    from mypy_extensions import i64

_U16: Final = Struct("!H").unpack_from
_U64: Final = Struct("!Q").unpack_from
_I32: Final = Struct("!i").unpack_from
_I64: Final = Struct("!q").unpack_from

_NEW: Final = ord("N")
_TEXT: Final = ord("t")
_NULL: Final = ord("n")
_UNCHANGED: Final = ord("u")


class Malformed(Exception):
    """The bytes are not a message; `offset` says where."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.offset = offset


class Cursor:
    """Reader of one message; starts after its tag, which is at `start`."""

    __slots__ = ("offset", "payload", "toasted")

    def __init__(self, payload: bytes, start: int) -> None:
        self.payload = payload
        self.offset = start + 1
        self.toasted = False  # did a tuple hold an unchanged toasted value?

    def _take(self, size: int) -> int:
        """Advance by `size` existing bytes; return the offset of the first."""
        start = self.offset
        if start + size > len(self.payload):
            raise Malformed(f"{size} bytes expected, payload ends", start)
        self.offset = start + size
        return start

    def _number(self, start: int) -> int:
        """Put 32 bits together by hand: compiled, a call of struct costs more."""
        payload = self.payload
        return (
            payload[start] << 24
            | payload[start + 1] << 16
            | payload[start + 2] << 8
            | payload[start + 3]
        )

    def u8(self) -> int:
        return self.payload[self._take(1)]

    def u16(self) -> int:
        value: int = _U16(self.payload, self._take(2))[0]
        return value

    def u32(self) -> int:
        return self._number(self._take(4))

    def i32(self) -> int:
        value: int = _I32(self.payload, self._take(4))[0]
        return value

    def u64(self) -> int:
        value: int = _U64(self.payload, self._take(8))[0]
        return value

    def i64(self) -> int:
        value: int = _I64(self.payload, self._take(8))[0]
        return value

    def tag(self, allowed: bytes) -> int:
        """Return one byte that says what follows."""
        found = self.u8()
        if found not in allowed:
            wanted = " or ".join(map(chr, allowed))
            raise Malformed(f"{chr(found)!r} where {wanted}", self.offset - 1)
        return found

    def row_head(self) -> int:
        """Read the relation of a row that begins with its new tuple: 'N' must follow.

        One step for what u32 and tag do in two: most messages are inserts.
        """
        payload = self.payload
        start = self._take(5)
        if payload[start + 4] != _NEW:
            raise Malformed(f"{chr(payload[start + 4])!r} where N", start + 4)
        return self._number(start)

    def string(self) -> str:
        """Return a text up to its NUL byte."""
        end = self.payload.find(0, self.offset)
        if end < 0:
            raise Malformed("string without its end", self.offset)
        start = self._take(end - self.offset + 1)
        return str(self.payload[start:end], "utf-8")

    def content(self) -> bytes:
        """Return the bytes after their 32-bit length."""
        size = self.u32()
        start = self._take(size)
        return self.payload[start : start + size]

    def tuple_data(self) -> list[Value]:
        """Return a TupleData. One loop over local names: rows spend their time here."""
        payload = self.payload
        size: i64 = len(payload)
        start: i64 = self._take(2)
        count = payload[start] << 8 | payload[start + 1]
        offset: i64 = self.offset
        end: i64
        values: list[Value] = []
        for _ in range(count):
            if offset >= size:
                raise Malformed("column expected, payload ends", offset)
            kind = payload[offset]
            if kind == _TEXT:
                start = offset + 5
                if start > size:
                    raise Malformed("length expected, payload ends", offset)
                # by hand: compiled, it costs nothing beside a call of struct's
                end = start + (
                    payload[offset + 1] << 24
                    | payload[offset + 2] << 16
                    | payload[offset + 3] << 8
                    | payload[offset + 4]
                )
                if end > size:
                    raise Malformed("value is longer than its payload", offset)
                values.append(payload[start:end].decode())
                offset = end
            elif kind == _NULL:
                values.append(None)
                offset += 1
            elif kind == _UNCHANGED:
                values.append(UNCHANGED)
                self.toasted = True
                offset += 1
            else:
                raise Malformed(f"column of kind {chr(kind)!r}", offset)
        self.offset = offset
        return values
