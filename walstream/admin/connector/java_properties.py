"""Java's .properties syntax, as java.util.Properties reads it.

A key ends at the first `=`, `:` or blank; a line that ends in an odd number of
backslashes goes on in the next. Of a key that is written twice the last value counts.
"""

import re
from collections.abc import Iterator
from typing import Final

_BLANKS: Final = " \t\f"
_ENDS: Final = "\r\n"
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_CODE: Final = re.compile("[0-9A-Fa-f]{4}")
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def read(text: str) -> list[tuple[str, str]]:
    r"""Return keys and values in their order; ValueError tells of a broken \uXXXX."""
    return [_entry(line) for line in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments, what continues them appended."""
    line, continued = "", False
    for natural in re.split("\r\n|\r|\n", text):
        part = natural.lstrip(_BLANKS)
        if not line and part.startswith(("#", "!")):
            continued = False
            continue
        backslashes = len(part) - len(part.rstrip("\\"))
        continued = backslashes % 2 == 1
        line += part[:-1] if continued else part
        if line and not continued:
            yield line
            line = ""
    if line or continued:
        yield line


def _entry(line: str) -> tuple[str, str]:
    end, escaped = 0, False
    while end < len(line) and (escaped or line[end] not in f"=:{_BLANKS}"):
        escaped = line[end] == "\\" and not escaped
        end += 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in {"=", ":"}:
        rest = rest[1:].lstrip(_BLANKS)
    return _unescaped(line[:end]), _unescaped(rest)


def _unescaped(text: str) -> str:
    made, place = "", 0
    while place < len(text):
        character = text[place]
        place += 1
        if character != "\\":
            made += character
            continue
        character = text[place : place + 1]
        place += 1
        if character == "u":
            code = _CODE.match(text, place)
            if not code:
                raise ValueError(r"has a \u that no four hexadecimal digits follow")
            made += chr(int(code[0], 16))
            place += 4
        else:
            made += _CONTROLS.get(character, character)
    return _PAIR.sub(_joined, made)


def _joined(pair: re.Match[str]) -> str:
    """Make of Java's two characters the one that they stand for."""
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")
