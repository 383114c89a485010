"""A text in the place of one that is too large to be copied often.

The large one stays as UTF-8 where it came in. What is written of a row with stand-ins
has them where the large texts belong; `walstream.records.large_op` puts those there.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Self

import orjson

from walstream.telemetry import runtime

_PIECE: Final = 1 << 20  # bytes that are looked at together
_LONGEST: Final = 4  # bytes of a character
_FOLLOWS: Final = 0x80  # up to _BEGINS: a byte that is no character's first
_BEGINS: Final = 0xC0


class StandIn(str):
    """No JSON, number or date, and in no row but for this: so it is found again."""

    __slots__ = ("utf8",)
    utf8: memoryview

    def __new__(cls, utf8: memoryview) -> Self:
        made = super().__new__(cls, f"walstream:{runtime.token_hex(16)}")
        made.utf8 = utf8
        return made

    def __eq__(self, other: object) -> bool:
        """Compare the texts that are meant."""
        if isinstance(other, StandIn):
            return self.utf8 is other.utf8 or self.utf8 == other.utf8
        return isinstance(other, str) and self.text() == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment] # nothing is looked up by it

    def text(self) -> str:
        """Return the text itself, whole."""
        return str(self.utf8, "utf-8")

    def pieces(self) -> Iterator[str]:
        """Yield it in pieces. Raises UnicodeDecodeError if it is not UTF-8."""
        utf8 = self.utf8
        start, size = 0, len(utf8)
        while start < size:
            end = min(start + _PIECE, size)
            for _ in range(_LONGEST):
                if end == size or not _FOLLOWS <= utf8[end] < _BEGINS:
                    break
                end -= 1
            yield str(utf8[start:end], "utf-8")
            start = end

    def json(self) -> Iterator[bytes]:
        """Write it as a JSON text, without the quotes around it."""
        for piece in self.pieces():
            yield orjson.dumps(piece)[1:-1]


def weight(row: Sequence[object] | None) -> int:
    """Return how long the texts of a row are, those that are stood in for too."""
    if not row:
        return 0
    return sum(
        len(value.utf8 if isinstance(value, StandIn) else value)
        for value in row
        if isinstance(value, str)
    )
