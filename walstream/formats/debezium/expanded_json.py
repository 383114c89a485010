"""A JSON text as values of Connect: a schema made of the text itself, and its JSON.

As Debezium's EventRouter expands a payload (JsonSchemaData): what has no schema is left
out, and the objects of an array are one struct, whose missing fields are null. Theirs
takes the fields of inner objects from one of them alone, and loses the others'.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.float_text import python_float
from walstream.formats.debezium.json_text import json_text

_STRING: Final = Schema("string", optional=True)
_BOOLEAN: Final = Schema("boolean", optional=True)
_INT32: Final = Schema("int32", optional=True)
_INT64: Final = Schema("int64", optional=True)
_DOUBLE: Final = Schema("double", optional=True)
_BYTES: Final = Schema("bytes", optional=True)
_PLAIN: Final = {str: _STRING, bool: _BOOLEAN, float: _DOUBLE}
_INT_BITS: Final = 31
_LONG_BITS: Final = 63


class Unexpandable(ValueError):
    """A text that has no such schema: it stays a text."""


def expand(name: str, text: str, *, nulls: bool) -> tuple[Schema, str]:
    """Return schema and JSON of a text; `nulls` are kept, or left out.

    Structs have names that begin with `name`. Raises Unexpandable.
    """
    if text[:1] not in {"{", "["}:
        raise Unexpandable
    try:
        read, _ = _READER.raw_decode(text)
        schema = _Schemas(nulls=nulls).of(name, read)
        if schema is None or schema.type != "struct":
            raise Unexpandable
        return schema, _encodable(_written(read, schema))
    except (ValueError, RecursionError):
        raise Unexpandable from None


def _no_constant(_: str) -> None:
    raise Unexpandable  # NaN and its like, which Python alone reads


_READER: Final = json.JSONDecoder(parse_constant=_no_constant)


class _Schemas:
    def __init__(self, *, nulls: bool) -> None:
        self._null = _BYTES if nulls else None

    def of(self, name: str, value: Any) -> Schema | None:
        """Return a value's schema; None: it is left out."""
        if value is None:
            return self._null
        if isinstance(value, dict):
            return self._struct(name, value)
        if isinstance(value, list):
            items = self._items(name, value) if value else None
            return items and Schema("array", optional=True, items=items)
        if isinstance(value, int) and not isinstance(value, bool):
            return _of_integer(value)
        return _PLAIN[type(value)]

    def _struct(self, name: str, value: dict[str, Any]) -> Schema:
        fields = []
        for field, inner in value.items():
            if not field:
                raise Unexpandable
            found = self.of(f"{name}.{field}" if name.strip() else field, inner)
            if found is not None:
                fields.append((field, found))
        return Schema("struct", optional=True, name=name, fields=tuple(fields))

    def _items(self, name: str, values: list[Any]) -> Schema:
        there = [value for value in values if value is not None]
        if len(set(map(_kind, there))) > 1:
            raise Unexpandable
        if there and isinstance(there[0], dict):
            structs = dict.fromkeys(self._struct(name, value) for value in there)
            return _merged(list(structs))
        found = self.of("", there[0] if there else None)
        if found is None:
            raise Unexpandable
        return found


def _of_integer(value: int) -> Schema:
    size = (value if value >= 0 else ~value).bit_length()
    if size <= _INT_BITS:
        return _INT32
    return _INT64 if size <= _LONG_BITS else _DOUBLE


def _kind(value: Any) -> object:
    """Return what has to be the same in a whole array: of numbers, their schema."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _of_integer(value).type
    return "double" if isinstance(value, float) else type(value)


def _merged(structs: Sequence[Schema]) -> Schema:
    """Return the struct that has the fields of all; of several it is never null."""
    first, *others = structs
    fields = dict(first.fields)
    for struct in others:
        for field, schema in struct.fields:
            known = fields.get(field)
            fields[field] = schema if known is None else _either(known, schema)
    return replace(first, fields=tuple(fields.items()), optional=not others)


def _either(one: Schema, other: Schema) -> Schema:
    """Return what takes the values of both; a null's schema takes none."""
    if one == other or other.type == "bytes":
        return one
    if one.type == "bytes":
        return other
    if one.type == other.type == "struct":
        return replace(_merged([one, other]), optional=True)
    if one.items is not None and other.items is not None:
        return replace(one, items=_either(one.items, other.items))
    raise Unexpandable


def _encodable(text: str) -> str:
    """Return a text; raise ValueError for half of a surrogate pair, as JSON has it."""
    text.encode()
    return text


def _written(value: Any, schema: Schema) -> str:
    """Write a value; raise Unexpandable where it is not of its schema."""
    if value is None and schema.optional:
        return "null"
    if schema.type == "struct" and isinstance(value, dict):
        fields = [
            f"{json_text(name)}:{_written(value.get(name), inner)}"
            for name, inner in schema.fields
        ]
        return f"{{{','.join(fields)}}}"
    if schema.items is not None and isinstance(value, list):
        return f"[{','.join([_written(item, schema.items) for item in value])}]"
    return _scalar(value, schema.type)


def _scalar(value: Any, kind: str) -> str:
    match value:
        case str() if kind == "string":
            return json_text(value)
        case bool() if kind == "boolean":
            return "true" if value else "false"
        case int() if kind == _of_integer(value).type != "double":
            return str(value)
        case float() if kind == "double":
            return python_float(value)
    raise Unexpandable
