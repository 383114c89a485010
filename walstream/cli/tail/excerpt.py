"""One value in few words: quoted where it could be misread, long ones shortened."""

from typing import Final

from walstream.cli.tail.layout import Line, Piece
from walstream.telemetry.terminal import escape

LONGEST: Final = 60  # characters that are shown of a value
_SPARED: Final = 10  # so few more are shown too: saying so would take as much
_CONTEXT: Final = 20  # characters before a difference
_BETWEEN: Final = (", ", ": ", " → ")  # stands between columns, and within them
_WORDS: Final = {"null", "nothing changed"}  # said of values
_BRACKETS: Final = {("{", "}"), ("[", "]")}  # hold together what is between them


def excerpt(
    text: str,
    longest: int | None,
    *,
    style: str = "",
    start: int = 0,
    quotable: bool = True,
) -> Line:
    """Show `longest` characters from `start` on, and how many are left out."""
    end = len(text)
    if longest is not None and end - start > longest + _SPARED:
        end = start + longest
    piece = text[start:end]
    # a space where a text was cut is no edge of it
    edged = piece.lstrip() if start else piece
    edged = edged.rstrip() if end < len(text) else edged
    shown = _quote(piece) if quotable and _misleads(edged) else escape(piece)
    line = [Piece(shown, style)]
    if start:
        line.insert(0, Piece(f"(+{start})…", "dim"))
    if end < len(text):
        line.append(Piece(f"…(+{len(text) - end})", "dim"))
    return line


def _misleads(text: str) -> bool:
    """Return whether it would be taken for something else without quotes."""
    if not text or not text.isprintable() or text.strip() != text:
        return True
    if (text[0], text[-1]) in _BRACKETS:
        return False
    return (
        text[0] in '"('
        or text.casefold() in _WORDS
        or any(separator in text for separator in _BETWEEN)
    )


def _quote(text: str) -> str:
    escaped = escape(text.replace("\\", "\\\\").replace('"', '\\"'))
    return f'"{escaped}"'


def first_difference(one: str, other: str, longest: int) -> int:
    """Return where to begin two excerpts, so that they show where the texts part."""
    if max(len(one), len(other)) <= longest + _SPARED:
        return 0
    common = _common(one, other)
    return common - _CONTEXT if common > longest - _CONTEXT else 0


def _common(one: str, other: str) -> int:
    """Count the characters that both begin with; halving, since slices compare fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
