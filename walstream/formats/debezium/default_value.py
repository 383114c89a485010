"""A column's default as its schema shows it: literals, and an empty value for a function.

Debezium reads a default from its expression, for some types. What is neither a literal
nor a call has none here.
"""

import re
from typing import Final

from walstream.formats.debezium.connect_type import ConnectType

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
_RAW: Final = frozenset({"numeric", "float4", "float8", "int2", "int4", "int8", "bool"})
_BOOLEANS: Final = {"true": "t", "false": "f"}


def default_json(expression: str | None, name: str, into: ConnectType) -> str:
    """Return a default as JSON; "": none is shown.

    `name` is the column's own type: a domain, or a type of an extension, shows none.
    """
    text = _text(expression, name, labels=dict(into.schema.parameters).get("allowed"))
    if text is None or into.schema.type in {"array", "map", "struct"}:
        return ""
    try:
        shown = into.render(text)
    except ValueError:
        return ""
    return "" if shown == "null" else shown


def _text(expression: str | None, name: str, labels: str | None) -> str | None:
    """Return PostgreSQL's text of the default; None: none is known."""
    if expression is None:
        return None
    expression = expression.strip()
    of_enum = labels is not None
    if not of_enum and name not in _TEXTS:
        return None
    literal = _LITERAL.fullmatch(expression)
    if literal is not None:
        text = literal[2].replace("''", "'")
        text = _ESCAPE.sub(r"\1", text) if literal[1] else text
        return None if of_enum and text not in (labels or "").split(",") else text
    if of_enum:
        return None
    if _CALL.match(expression) or expression.lower() in _CLOCK:
        return _TEXTS[name]
    if name not in _RAW:
        return None
    if name == "bool":
        return _BOOLEANS.get(expression)
    number = _NUMBER.fullmatch(expression)
    return number[1] if number else None
