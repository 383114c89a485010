"""A text as Jackson writes it in JSON: Kafka Connect's keys and values are of that.

Control characters are escaped with capital hex digits, characters beyond the BMP as two
surrogates. A key's partition is that of its bytes, so each of them matters.
"""

import re
from json.encoder import encode_basestring
from typing import Final

_PIECE: Final = re.compile(r"\\u[0-9a-f]{4}|\\.|[\U00010000-\U0010ffff]")
_BEYOND: Final = re.compile("[\U00010000-\U0010ffff]")
_SURROGATES: Final = 0x10000
_quoted: Final = encode_basestring  # compiled, a name of its own is found at once


def json_text(value: str) -> str:
    """Write a text with its quotes."""
    written: str = _quoted(value)
    if not value.isascii() and _BEYOND.search(value) is not None:
        return _PIECE.sub(_escaped, written)
    if len(written) == len(value) + 2:  # nothing is escaped
        return written
    return _PIECE.sub(_escaped, written) if "\\u" in written else written


def inner_text(value: str) -> str:
    """Write a text in a document that is itself a text: characters stay whole there."""
    written: str = _quoted(value)
    return _PIECE.sub(_capital, written) if "\\u" in written else written


def _capital(found: re.Match[str]) -> str:
    text = found[0]
    return f"\\u{text[2:].upper()}" if text[:2] == "\\u" else text


def _escaped(found: re.Match[str]) -> str:
    text = found[0]
    if text[0] == "\\":
        return _capital(found)
    code = ord(text) - _SURROGATES
    return f"\\u{0xD800 | code >> 10:04X}\\u{0xDC00 | code & 0x3FF:04X}"
