"""Bytes of a record as text, and JSON that cannot drive a terminal."""

import json


def is_text(value: bytes) -> bool:
    """Tell UTF-8 from other bytes."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def as_text(value: bytes) -> str:
    r"""Decode; bytes that are no UTF-8 are spelt `\xff`."""
    return value.decode("utf-8", "backslashreplace")


def escape_json(document: str) -> str:
    """Spell within JSON, which stays the same JSON: only its strings hold such."""
    if document.isprintable():
        return document
    return "".join(
        char if char.isprintable() else json.dumps(char)[1:-1] for char in document
    )
