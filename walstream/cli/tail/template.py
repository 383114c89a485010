r"""`tail --format`: records by kcat's tokens, as `%t %p %o %k %v\n`.

| token | meaning |
|---|---|
| `%t` `%p` `%o` | topic, partition, offset |
| `%k` `%K` | key; its length in bytes, -1 where there is none |
| `%v` or `%s`, `%S` | value; its length in bytes, -1 for a tombstone |
| `%T` | timestamp in ms since 1970, -1 where there is none |
| `%h` | headers: `name=value,name=value` |
| `%%` | a percent sign |

`\n`, `\r`, `\t`, `\0`, `\xNN` and `\\` are what they are in C. No newline is added.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from walstream.errors import ConfigError
from walstream.kafka.topic_reader import TopicRecord

TOKENS: Final = "%t %p %o %k %v %T %h"

_Field = Callable[[TopicRecord], bytes]
_PIECE: Final = re.compile(r"%(.?)|\\(x[0-9A-Fa-f]{2}|.?)", re.DOTALL)
_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\"}


def _headers(record: TopicRecord) -> bytes:
    return b",".join(
        name.encode() + b"=" + (b"NULL" if value is None else value)
        for name, value in record.headers
    )


def _number(value: int | None) -> bytes:
    return b"%d" % (-1 if value is None else value)


def _length(value: bytes | None) -> bytes:
    return _number(None if value is None else len(value))


_FIELDS: Final[dict[str, _Field]] = {
    "t": lambda record: record.topic.encode(),
    "p": lambda record: _number(record.partition),
    "o": lambda record: _number(record.offset),
    "k": lambda record: record.key or b"",
    "K": lambda record: _length(record.key),
    "v": lambda record: record.value or b"",
    "s": lambda record: record.value or b"",
    "S": lambda record: _length(record.value),
    "T": lambda record: _number(record.timestamp_ms),
    "h": _headers,
}


class Template:
    """A format that was parsed once, for any number of records."""

    def __init__(self, text: str) -> None:
        """Raise ConfigError for a token that does not exist."""
        self._pieces: list[bytes | _Field] = list(_parts(text))

    def render(self, record: TopicRecord) -> bytes:
        """Return the bytes of one record; values are its own bytes."""
        return b"".join(
            piece if isinstance(piece, bytes) else piece(record)
            for piece in self._pieces
        )


def _parts(text: str) -> Sequence[bytes | _Field]:
    parts: list[bytes | _Field] = []
    at = 0
    for found in _PIECE.finditer(text):
        parts.append(text[at : found.start()].encode())
        at = found.end()
        parts.append(_escape(found[2]) if found[1] is None else _token(found[1]))
    parts.append(text[at:].encode())
    return [part for part in parts if part != b""]


def _token(letter: str) -> bytes | _Field:
    if letter == "%":
        return b"%"
    if letter not in _FIELDS:
        raise ConfigError(
            f"--format: there is no token %{letter}",
            hint=f"tokens are {TOKENS}, %K and %S (lengths), and %%",
        )
    return _FIELDS[letter]


def _escape(word: str) -> bytes:
    if word.startswith("x") and len(word) > 1:
        return bytes.fromhex(word[1:])
    if word not in _ESCAPES:
        raise ConfigError(
            f"--format: there is no escape \\{word}",
            hint=r"escapes are \n, \r, \t, \0, \xNN and \\",
        )
    return _ESCAPES[word]
