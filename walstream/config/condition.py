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
_QUOTED: Final = re.compile(r"""'[^']*'|"[^"]*\"""")
_BLANK: Final = {"'": "''", '"': '"…"'}
# these of a text whose quoted parts are blank
_WORD: Final = re.compile(r"\b(select|table|values|uescape)\b", re.IGNORECASE)
_DOT: Final = re.compile(r"\.\s*[^\d\s]")
_CALL: Final = re.compile(r"""("…"|[^\s"'()\[\],:+*/<>=~!@#%^&|`?-]+)\s*\(""")
_PLAIN: Final = re.compile(
    # words before a parenthesis, and types
    "in|and|or|not|any|some|all|between|like|ilike|is|from|then|else|when|case|row|"
    "numeric|decimal|varchar|char|character|varying|bit|time|timestamp|timestamptz|"
    "interval|float|"
    # functions of pg_catalog that only compute
    "coalesce|nullif|greatest|least|lower|upper|length|abs|mod|floor|ceil|round|left|"
    "right|substr|substring|btrim|starts_with|extract|date_part|date_trunc|now|"
    "hashtext|md5",
    re.IGNORECASE | re.ASCII,
)


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


def check_plain(written: str) -> None:
    """Raise ValueError but for a condition that can only compare columns of a row.

    A function may act where it is only to read, as pg_drop_replication_slot does, and
    a sub-select reads whatever the role may.
    """
    text = condition(written)
    text = _QUOTED.sub(lambda found: _BLANK[found[0][0]], text)
    if found := _WORD.search(text):
        raise ValueError(f"has {found[1].upper()}")
    if _DOT.search(text):
        raise ValueError("has a name with a dot")
    for call in _CALL.finditer(text):
        if not _PLAIN.fullmatch(call[1]):
            raise ValueError(f"calls {call[1]}(…)")


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
