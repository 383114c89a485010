"""A row message of a large frame: its large values stay where libpq put them.

The rest of it is decoded like any other.
"""

from struct import Struct, error
from typing import Final, Self, cast

from walstream.errors import DecodeError
from walstream.formats.placeholder import StandIn
from walstream.pipeline.pgoutput.decode import decode
from walstream.pipeline.pgoutput.frame import HEADER_SIZE
from walstream.pipeline.pgoutput.messages import Delete, Insert, RowMessage, Update
from walstream.row import Value

LARGE_FRAME: Final = 1 << 20
HEAD_SIZE: Final = HEADER_SIZE + 1  # and the tag: fewer bytes than any row has
_LARGE_VALUE: Final = 4096  # a row has 1,600 columns at most
_U16: Final = Struct("!H").unpack_from
_U32: Final = Struct("!I").unpack_from
_TEXT: Final = ord("t")
_OID_SIZE: Final = 4
_EMPTY: Final = b"t\0\0\0\0"

_Row = list[tuple[int, StandIn]]


class LargeFrame(bytes):
    """Head of a frame, HEAD_SIZE bytes; `take` returns the whole payload, once."""

    _whole: memoryview | None

    def __new__(cls, whole: memoryview) -> Self:
        made = super().__new__(cls, whole[:HEAD_SIZE])
        made._whole = whole
        return made

    @property
    def size(self) -> int:
        """Bytes of the whole frame; of its head once it was taken."""
        return len(self) if self._whole is None else len(self._whole)

    def take(self) -> memoryview:
        """Return the payload and forget it, so the frame keeps nothing large."""
        whole, self._whole = self._whole, None
        if whole is None:
            raise ValueError("taken before")
        return whole[HEADER_SIZE:]


def read(frame: bytes) -> RowMessage:
    """Return a row whose large values are placeholders.

    Raises DecodeError for what `decode` would not take.
    """
    if not isinstance(frame, LargeFrame):
        raise DecodeError("a row ends", tag=chr(frame[-1]), offset=1)
    payload = frame.take()
    try:
        small, rows = _thin(payload)
        for row in rows:
            for _, text in row:
                for _ in text.pieces():
                    pass  # is UTF-8
    except (IndexError, ValueError, error):
        return cast("RowMessage", decode(bytes(payload)))  # tells what is wrong
    message = decode(small)
    for values, row in zip(_rows_of(message), rows, strict=True):
        for index, text in row:
            values[index] = text
    return cast("RowMessage", message)


def _rows_of(message: object) -> list[list[Value]]:
    if isinstance(message, Insert):
        return [message.new]
    if isinstance(message, Update):
        return [message.new] if message.old is None else [message.old, message.new]
    return [message.old] if isinstance(message, Delete) else []


def _thin(payload: memoryview) -> tuple[bytes, list[_Row]]:
    """Return the message with empty texts for large values, and these values by row."""
    size = len(payload)
    offset = 1 + _OID_SIZE
    thin = bytearray(payload[:offset])
    rows: list[_Row] = []
    while offset < size:
        row: _Row = []
        thin += payload[offset : offset + 3]  # which row, and how many columns
        count = _U16(payload[offset + 1 : offset + 3])[0]
        offset += 3
        for index in range(count):
            start = offset
            if payload[offset] != _TEXT:
                offset += 1
            else:
                start += len(_EMPTY)
                length = _U32(payload[offset + 1 : start])[0]
                if start + length > size:
                    raise ValueError("longer than its payload")
                if length > _LARGE_VALUE:
                    row.append((index, StandIn(payload[start : start + length])))
                    thin += _EMPTY
                    offset = start = start + length
                else:
                    start, offset = offset, start + length
            thin += payload[start:offset]
        rows.append(row)
    return bytes(thin), rows
