"""Conditions of parts of tables: expressions of SQL, by their texts alone. Pure.

Each is put in parentheses beside others. So what could end those, or hide what follows,
is refused: the server says what else is wrong.
"""

import re
from collections.abc import Iterator
from typing import Final

LONGEST: Final = 1000  # characters
_LONGEST_JOINED: Final = 4 * LONGEST
# a quote that is doubled ends a text and begins the next one: as good
_TOKEN: Final = re.compile(
    r"""(?P<text>'[^']*'|"[^"]*")|(?P<odd>['"\\;$]|--|/\*|\*/|\0)|(?P<sign>[()\[\]])""",
)
_CLOSED_BY: Final = {"(": ")", "[": "]"}
_WORDS: Final = {
    "'": "a text without its end",
    '"': "a name without its end",
    "\\": "a backslash",
    ";": "a semicolon",
    "$": "a dollar sign outside a text",
    "--": "a comment",
    "/*": "a comment",
    "*/": "the end of a comment",
    "\0": "a NUL character",
}


def condition(written: str) -> str:
    """Return it without spaces around; raise ValueError unless it may be one."""
    text = written.strip()
    if not text:
        raise ValueError("is empty: write a condition, as in: created > '2026-01-01'")
    if len(text) > LONGEST:
        raise ValueError(f"is longer than {LONGEST} characters")
    for problem in _problems(text):
        raise ValueError(f"is not one expression of SQL: it has {problem}")
    return text


def either(pending: str | None, asked: str) -> str:
    """Return the condition of what is pending and what is asked; "": the whole table.

    `pending` is None where nothing is. More than was asked for does no harm.
    """
    if pending is None or pending == asked:
        return asked
    joined = f"({pending}) OR ({asked})" if pending and asked else ""
    return joined if len(joined) <= _LONGEST_JOINED else ""


def both(row_filter: str, where: str) -> str:
    """Return the SQL of the rows that both let through; "": all."""
    if not where:
        return row_filter
    return f"({row_filter}) AND ({where})" if row_filter else where


def _problems(text: str) -> Iterator[str]:
    if "\\" in text:
        yield _WORDS["\\"]  # in a text it means what the server's settings say
    opened: list[str] = []
    for found in _TOKEN.finditer(text):
        if odd := found["odd"]:
            yield _WORDS[odd]
        elif (sign := found["sign"]) in _CLOSED_BY:
            opened.append(_CLOSED_BY[sign])
        elif sign and (not opened or opened.pop() != sign):
            yield f"{sign!r} without its beginning"
    if opened:
        yield f"no {opened[-1]!r} to a beginning"
