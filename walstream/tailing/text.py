r"""Text that cannot drive a terminal: what does not print is spelt out, as `\x1b`.

Control characters, and those that turn the direction of writing or take no room: a
row's value may hold any of them.
"""

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


def escape(text: str) -> str:
    r"""Spell as Python does: `\n`, `\x1b`, `\u202e`."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text
    )


def escape_json(document: str) -> str:
    """Spell within JSON, which stays the same JSON: only its strings hold such."""
    if document.isprintable():
        return document
    return "".join(
        char if char.isprintable() else json.dumps(char)[1:-1] for char in document
    )
