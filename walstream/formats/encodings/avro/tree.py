"""A value of Connect's JSON -> Avro, by its schema.

For what is written once for a table, for records that are rare, and for types that have
no writer of their own in `columns`.
"""

from binascii import a2b_base64
from collections.abc import Callable
from typing import Any, Final

import orjson

from walstream.formats.debezium.connect import Schema
from walstream.formats.encodings.avro import primitive
from walstream.formats.encodings.avro.primitive import (
    END,
    FALSE,
    NULL,
    TRUE,
    TURNED_NULL,
    TURNED_VALUE,
    VALUE,
)

Write = Callable[[Any], bytes]

_BITS: Final = {"int16": 15, "int32": 31, "int64": 63}
_SPECIAL: Final = frozenset({'"NaN"', '"Infinity"', '"-Infinity"'})


def turned(schema: Schema) -> bool:
    """Return whether a type has a default, which stands before null in a union.

    Numbers that JSON has no word for are none in Avro.
    """
    if not schema.default:
        return False
    return schema.type == "string" or schema.default not in _SPECIAL


def latin(shown: str) -> str:
    """Return bytes, in base64 with quotes, as characters of Latin-1."""
    return a2b_base64(shown[1:-1]).decode("latin-1")


def branches(schema: Schema) -> tuple[bytes, bytes]:
    """Return what stands before a value of an optional type, and what null is."""
    if not schema.optional:
        return b"", b""
    return (TURNED_VALUE, TURNED_NULL) if turned(schema) else (VALUE, NULL)


def document(schema: Schema, payload: bytes | str) -> bytes:
    """Write a record, or a value, whose JSON is `payload`.

    Raises ValueError for another type's.
    """
    return value_bytes(schema, orjson.loads(payload))


def value_bytes(schema: Schema, value: Any) -> bytes:
    """Write a value as JSON has it, with its branch if it may be null."""
    before, null = branches(schema)
    if value is None:
        if not null:
            raise ValueError("not a value")
        return null
    return before + plain_bytes(schema, value)


def writer_of(schema: Schema) -> Write:
    """Return what `value_bytes` does for a schema, made once for many values.

    The value has to be one of the schema.
    """
    before, null = branches(schema)
    plain = _plain_writer(schema)
    if not null:
        return plain

    def write(value: Any) -> bytes:
        return null if value is None else before + plain(value)

    return write


def _plain_writer(schema: Schema) -> Write:
    kind, items = schema.type, schema.items
    if kind == "struct":
        return _struct_writer([(name, writer_of(one)) for name, one in schema.fields])
    if items is not None:
        of_item = writer_of(items)
        return lambda value: block([of_item(one) for one in value])
    if kind in _BITS:
        return lambda value: integer(kind, value)
    if kind == "string":
        return primitive.text
    return lambda value: plain_bytes(schema, value)


def _struct_writer(fields: list[tuple[str, Write]]) -> Write:
    def write(value: Any) -> bytes:
        return b"".join([of_field(value[name]) for name, of_field in fields])

    return write


def plain_bytes(schema: Schema, value: Any) -> bytes:
    """Write one that is not null, without a branch."""
    kind = schema.type
    if kind == "struct":
        fields = [value_bytes(field, value[name]) for name, field in schema.fields]
        return b"".join(fields)
    if kind in {"array", "map"}:
        return _many(schema, value)
    return _scalar(kind, value)


def _scalar(kind: str, value: Any) -> bytes:
    if kind in _BITS:
        return integer(kind, value)
    if kind == "boolean":
        return TRUE if value else FALSE
    if kind == "string":
        return primitive.text(value)
    if kind == "bytes":
        return primitive.raw(a2b_base64(value))
    number = float(value)
    return primitive.double(number) if kind == "double" else primitive.single(number)


def integer(kind: str, value: int) -> bytes:
    """Write a number of so many bits; raise ValueError for a larger one."""
    if (value if value >= 0 else ~value) >> _BITS[kind]:
        raise ValueError("not an integer of this size")
    return primitive.long(value)


def block(parts: list[bytes]) -> bytes:
    """Write an array's items, or a map's pairs, in one block."""
    if not parts:
        return END
    return b"".join([primitive.long(len(parts)), *parts, END])


def _many(schema: Schema, value: Any) -> bytes:
    items, keys, values = schema.items, schema.keys, schema.values
    if items is not None:
        return block([value_bytes(items, one) for one in value])
    if keys is None or values is None:
        raise ValueError("not a type")
    pairs = value.items() if isinstance(value, dict) else value
    return block([value_bytes(keys, k) + value_bytes(values, v) for k, v in pairs])
