"""The placeholder of an unchanged TOAST value, in the form of each type."""

from binascii import b2a_base64
from hashlib import md5
from typing import Final
from uuid import UUID

from walstream.formats.debezium.json_text import json_text

_TEXTS: Final = frozenset({25, 1042, 1043, 114, 3802})  # text, char, varchar, json(b)
_NUMBERS: Final = frozenset({23, 20})  # int4, int8
_BYTEA: Final = 17
_DATE: Final = 1082
_UUID: Final = 2950
_SIGN: Final = 128


class Unavailable:
    """The placeholder as JSON, made once for all columns."""

    def __init__(self, placeholder: str) -> None:
        raw = placeholder.encode()
        self.text = json_text(placeholder)
        self.base64 = f'"{b2a_base64(raw, newline=False).decode()}"'
        self.pair = f"{{{self.text}:{self.text}}}"  # of an hstore
        # Java's bytes have a sign
        numbers = [str(one - 2 * _SIGN if one >= _SIGN else one) for one in raw]
        self._numbers = f"[{','.join(numbers)}]"
        digest = md5(raw, usedforsecurity=False).digest()
        self._uuid = f'["{UUID(bytes=digest, version=3)}"]'
        self._texts = frozenset({placeholder, self.base64[1:-1], self.pair})
        self._others: list[object] = [
            *({placeholder: placeholder}, [placeholder], [self.base64[1:-1]]),
            *(list(map(int, numbers)), [self._uuid[2:-2]]),
        ]

    def is_one(self, value: object) -> bool:
        """Return whether a value of JSON is the placeholder, in some type's form."""
        if isinstance(value, str):
            return value in self._texts
        return isinstance(value, list | dict) and value in self._others

    def array(self, element: int, *, as_bytes: bool, as_days: bool) -> str | None:
        """Return that of an array, named by its element; None: it has no form.

        `as_bytes` and `as_days`: are bytea and date bytes and numbers, or texts?
        """
        if element in _TEXTS:
            return f"[{self.text}]"
        if element == _BYTEA:
            return f"[{self.base64 if as_bytes else self.text}]"
        if element in _NUMBERS or (element == _DATE and as_days):
            return self._numbers
        return self._uuid if element == _UUID else None
