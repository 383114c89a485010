"""Lines of a given width: items are kept whole where they fit, and wrapped indented.

Plain lists of pieces: rich's own texts would take most of the time of a long `tail`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len

_INDENT: Final = "    "
_NARROWEST: Final = 20


class Piece(NamedTuple):
    text: str
    style: str = ""  # as rich spells it


Line = list[Piece]


def plain(line: Iterable[Piece]) -> str:
    """Return the text without its styles."""
    return "".join(piece.text for piece in line)


def lay_out(items: Iterable[Sequence[Piece]], width: int | None) -> list[Line]:
    """Put items on lines, a space between; None: all on one line."""
    paper = _Paper(None if width is None else max(width, _NARROWEST))
    for item in items:
        paper.put(item)
    return paper.lines


class _Paper:
    """Lines that are filled one after the other."""

    def __init__(self, width: int | None) -> None:
        self.lines: list[Line] = [[]]
        self._width = width
        self._used = 0

    def put(self, item: Sequence[Piece]) -> None:
        text = plain(item)
        wide = len(text) if text.isascii() else cell_len(text)
        if self._used and not self._has_room(1 + wide):
            self._begin_line()
        elif self._used:
            self._append([Piece(" ")], 1)
        if self._width is None or self._has_room(wide):
            self._append(item, wide)
            return
        parts = _parts(text, self._width - self._used, self._width - len(_INDENT))
        for number, (begin, end) in enumerate(parts):
            if number:
                self._begin_line()
            self._append(_cut(item, begin, end), cell_len(text[begin:end]))

    def _has_room(self, wide: int) -> bool:
        return self._width is None or self._used + wide <= self._width

    def _begin_line(self) -> None:
        self.lines.append([Piece(_INDENT)])
        self._used = len(_INDENT)

    def _append(self, pieces: Iterable[Piece], wide: int) -> None:
        self.lines[-1] += pieces
        self._used += wide


def _parts(text: str, first_room: int, room: int) -> Iterator[tuple[int, int]]:
    """Break what no line can hold: at a space, if one is near."""
    begin, left = 0, first_room
    while True:
        window = text[begin : begin + left + 1]
        fitting = _fitting(window, left)
        if begin + fitting == len(text):
            yield begin, len(text)
            return
        space = window.rfind(" ", fitting // 2, fitting + 1)
        end = begin + (fitting if space < 0 else space)
        yield begin, end
        begin = end if space < 0 else end + 1
        left = room


def _fitting(text: str, room: int) -> int:
    """Count the characters that fit into so many columns; at least one."""
    if text.isascii():
        return min(room, len(text))
    used = 0
    for index, char in enumerate(text):
        used += cell_len(char)
        if used > room:
            return max(index, 1)
    return len(text)


def _cut(item: Iterable[Piece], begin: int, end: int) -> Iterator[Piece]:
    """Take the characters from begin to end."""
    at = 0
    for text, style in item:
        part = text[max(begin - at, 0) : max(end - at, 0)]
        if part:
            yield Piece(part, style)
        at += len(text)
