r"""Text that cannot drive a terminal: what does not print is spelt out, as `\x1b`.

Control characters, and those that turn the direction of writing or take no room: the
name of a table, a server's message or a row's value may hold any of them.
"""

import json


def escape(text: str) -> str:
    r"""Spell as Python does: `\n`, `\x1b`, `\u202e`."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text
    )


def escape_lines(text: str) -> str:
    """Spell likewise, and leave what ends lines: where a text may have several."""
    return "\n".join(map(escape, text.split("\n")))


def indented(text: str) -> str:
    """Spell several lines so that none but the first begins like one of ours."""
    first, *rest = escape_lines(text).split("\n")
    return "\n".join([first, *(f"  {line.lstrip()}" for line in rest)])


def escape_json(document: str) -> str:
    """Spell within JSON, which stays the same JSON: only its strings hold such."""
    if document.isprintable():
        return document
    return "".join(
        char if char.isprintable() else json.dumps(char)[1:-1] for char in document
    )
