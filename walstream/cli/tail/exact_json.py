"""JSON with every number as it is written, and the parts of a record's content."""

import json

from walstream.cli.tail.content import Columns, Json, Value
from walstream.lsn import MAX, Lsn

Fields = dict[str, object]


def exact(value: bytes) -> Fields:
    """Parse with every number as it is written, and refuse names that come twice."""
    fields: Fields = json.loads(
        value.decode(), parse_float=Json, parse_int=Json, object_pairs_hook=_unique
    )
    return fields


def _unique(pairs: list[tuple[str, object]]) -> Fields:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name that comes twice")
    return fields


def columns_of(fields: Fields) -> Columns:
    """Return an object's values."""
    return {name: value_of(value) for name, value in fields.items()}


def rest_of(fields: Fields, known: set[str]) -> Columns:
    """Return those that are not known otherwise."""
    return {name: value_of(fields[name]) for name in fields if name not in known}


def value_of(value: object) -> Value:
    """Return a text or null as it is, all else as its JSON."""
    if value is None or isinstance(value, str | Json):
        return value
    return Json(_write(value))


def _write(value: object) -> str:
    """Write compact JSON, with numbers as they came."""
    if isinstance(value, Json):
        return value.text
    if isinstance(value, dict):
        items = (f"{_write(name)}:{_write(item)}" for name, item in value.items())
        return f"{{{','.join(items)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_write, value))}]"
    return json.dumps(value, ensure_ascii=False)


def text_of(value: object) -> str:
    """Return a text; raise TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError
    return value


def fields_of(value: object) -> Fields:
    """Return an object; raise TypeError for anything else."""
    if not isinstance(value, dict):
        raise TypeError
    return value


def number_of(value: object) -> str:
    """Return a number as it is written; raise TypeError for anything else."""
    if not isinstance(value, Json):
        raise TypeError
    return value.text


def lsn_of(text: str) -> Lsn:
    """Return an LSN; raise ValueError for what is none."""
    if not (text.isascii() and text.isdecimal() and int(text) <= MAX):
        raise ValueError("no LSN")
    return int(text)
