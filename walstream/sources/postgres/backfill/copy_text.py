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


def plain_keys(
    block: bytes, columns: tuple[int, ...], around: tuple[bytes, bytes, bytes]
) -> list[bytes] | None:
    """Join these columns of lines whose values are not escaped; None: look at them.

    `around` is what stands before, between and behind them.
    """
    if not columns:
        return None
    before, between, behind = around
    lines = block[:-1].split(b"\n")
    if columns == (0,):
        joined = [before + line.partition(b"\t")[0] + behind for line in lines]
    else:
        width = max(columns) + 1
        split = (line.split(b"\t", width) for line in lines)
        joined = [
            before + between.join([values[column] for column in columns]) + behind
            for values in split
        ]
    if b"\\" in block and any(b"\\" in key for key in joined):
        return None
    return joined


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
