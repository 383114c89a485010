r"""PostgreSQL's COPY text: lines of values between tabs, \N for null.

Most lines hold no backslash: they are split, and nothing else.
"""

import re
from typing import Final

_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_NULL: Final = "\\N"
_LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

Values = list[str | None]


def rows(block: bytes, columns: int) -> list[Values]:
    """Read whole lines, each of so many columns."""
    text = block.decode()
    lines = text.split("\n")
    lines.pop()  # behind the last newline
    if not columns:
        return [[] for _ in lines]
    if "\\" not in text:
        return [line.split("\t") for line in lines]  # type: ignore[misc]  # no null among them
    return [
        _values(line) if "\\" in line else line.split("\t")  # type: ignore[misc]  # likewise
        for line in lines
    ]


def first(block: bytes, columns: int) -> list[Values]:
    """Read so many first values of each line, or more; none is escaped but null."""
    lines = block.decode().split("\n")
    lines.pop()
    if not columns:
        return [[]] * len(lines)
    values = [line.split("\t", columns) for line in lines]
    if b"\\" not in block:
        return values  # type: ignore[return-value]  # no null among them
    return [
        [None if value == _NULL else value for value in row[:columns]] for row in values
    ]


def _values(line: str) -> Values:
    return [
        (None if value == _NULL else _ESCAPED.sub(_unescape, value))
        if "\\" in value
        else value
        for value in line.split("\t")
    ]


def _unescape(found: re.Match[str]) -> str:
    letter = found[1]
    return _LETTERS.get(letter, letter)
