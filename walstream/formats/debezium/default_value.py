"""A column's default as its schema shows it: a literal, or an empty value for a call.

Debezium reads a default from its expression, for some types. What is neither a literal
nor a call has none here.
"""

import re
from typing import Final

from walstream.formats.debezium.connect_type import ConnectType
from walstream.op import ColumnFacts

_LITERAL: Final = re.compile(
    r"(?:(E)|[Bb])?'((?:[^']|'')*)'(?:::(?:[^'():]|\([0-9, ]*\)|\"[^\"]*\")+)?"
)
_NUMBER: Final = re.compile(r"\(?(-?[0-9.]+(?:[eE][-+]?[0-9]+)?)\)?(?:::.+)?")
_CALL: Final = re.compile(r"\(?[A-Za-z0-9_.]+\(.*\)", re.DOTALL)
_CLOCK: Final = frozenset(
    {
        *("current_timestamp", "current_time", "current_date"),
        *("localtime", "localtimestamp"),
    }
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)

_TEXTS: Final = {
    "bpchar": "",
    "varchar": "",
    "text": "",
    "xml": "",
    "json": "{}",
    "jsonb": "{}",
    "bit": "00",
    "varbit": "0",
    "bool": "f",
    "numeric": "0.0",
    "float4": "0.0",
    "float8": "0.0",
    "int2": "0",
    "int4": "0",
    "int8": "0",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "date": "1970-01-01",
    "time": "00:00:00",
    "timestamp": "1970-01-01 00:00:00",
    "timestamptz": "1970-01-01 00:00:00+00",
    "interval": "00:00:00",
}
"""Types whose defaults are shown, with the value that stands for a function's."""
_NUMBERS: Final = frozenset({"numeric", "float4", "float8", "int2", "int4", "int8"})
_STRINGS: Final = frozenset({"bpchar", "varchar", "text"})
_BOOLEANS: Final = {"true": "t", "false": "f"}


def default_json(facts: ColumnFacts, into: ConnectType) -> str:
    """Return a default as JSON; "": none is shown.

    A domain shows none, nor does a type of an extension.
    """
    if facts.default is None or into.schema.type in {"array", "map", "struct"}:
        return ""
    expression = facts.default.strip()
    if facts.labels:
        text = _literal(expression)
        text = text if text in facts.labels else None
    elif facts.type_name in _TEXTS:
        text = _literal(expression)
        if text is None:
            text = _evaluated(expression, facts.type_name)
    else:
        text = None
    try:
        shown = "null" if text is None else into.render(text)
    except ValueError:
        shown = "null"
    return "" if shown == "null" else shown


def _literal(expression: str) -> str | None:
    found = _LITERAL.fullmatch(expression)
    if found is None:
        return None
    text = found[2].replace("''", "'")
    return _ESCAPE.sub(r"\1", text) if found[1] else text


def _evaluated(expression: str, name: str) -> str | None:
    """Return what stands for a call; or a number, or a boolean, without quotes."""
    if _CALL.match(expression) or expression.lower() in _CLOCK:
        return _TEXTS[name]
    if name == "bool":
        return _BOOLEANS.get(expression)
    if name in _STRINGS and expression in _BOOLEANS:
        return expression  # of a column that was a boolean
    number = _NUMBER.fullmatch(expression) if name in _NUMBERS | _STRINGS else None
    return number[1] if number else None
