"""Functions that write the texts of a type as Avro.

Each is made of the function that writes them as JSON, so both say the same, count what
has no form, and refuse the text of another type. Frequent types have a shorter way.
"""

from collections.abc import Callable
from typing import Final

import orjson

from walstream.formats.debezium.composite_text import items
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.connect_type import (
    NO_NULL,
    VARIABLE,
    ConnectType,
    RawBytes,
    Render,
    integer,
)
from walstream.formats.encodings.avro import primitive, tree
from walstream.formats.encodings.avro.primitive import FALSE, TRUE

Write = Callable[[str], bytes | None]
"""None: the value has no form, and is null."""
Lost = Callable[[str], None]

_BITS: Final = {"int16": 15, "int32": 31, "int64": 63}
_PLAIN_DIGITS: Final = 4000


def writer(found: ConnectType, lost: Lost) -> Write:
    """Return what writes a type's texts, without a branch."""
    if found.text:
        return primitive.text
    if found.bare is not None:
        return _bare(found.bare)
    if found.item is not None:
        return _array(found, found.item, lost)
    if found.raw is not None:
        return _raw(found.raw)
    return _scalar(found.schema, found.render)


def _scalar(schema: Schema, render: Render) -> Write:
    kind = schema.type
    found: Write | None = None
    if kind in _BITS:
        bits = _BITS[kind]
        found = _integer(bits) if render is integer else _number(kind, render)
    elif kind == "string":
        found = _string(render)
    elif kind == "boolean":
        found = _boolean(render)
    elif kind == "double":
        found = _real(render, primitive.double)
    elif kind == "float":
        found = _real(render, primitive.single)
    elif schema.name == VARIABLE.name:
        found = _variable(schema, render)
    return found or _from_json(schema, render)


def bits_of(found: ConnectType) -> int:
    """Return the bits of a type's integers, but the sign; 0: its values are others."""
    return _BITS.get(found.schema.type, 0) if found.render is integer else 0


def whole(text: str, bits: int) -> bytes:
    """Write the text of an integer of so many bits."""
    number = int(integer(text))
    if (number if number >= 0 else ~number) >> bits:
        raise ValueError("not an integer of this size")
    return primitive.long(number)


def _integer(bits: int) -> Write:
    return lambda text: whole(text, bits)


def _number(kind: str, render: Render) -> Write:
    def write(text: str) -> bytes:
        return tree.integer(kind, int(render(text)))

    return write


def _raw(read: RawBytes) -> Write:
    def write(text: str) -> bytes | None:
        found = read(text)
        return None if found is None else primitive.raw(found)

    return write


def _variable(schema: Schema, render: Render) -> Write:
    """Return what writes a VariableScaleDecimal: the scale, and the number's bytes."""

    def write(text: str) -> bytes | None:
        whole, _, decimals = text.partition(".")
        decimals = decimals.rstrip("0")
        digits = whole + decimals
        if digits.isdecimal() and len(digits) < _PLAIN_DIGITS:
            number = int(digits)
            raw = number.to_bytes((number.bit_length() >> 3) + 1, "big")
            return primitive.long(len(decimals)) + primitive.raw(raw)
        return _read(schema, render(text))

    return write


def _string(render: Render) -> Write:
    """Return what writes a text that JSON has with quotes, mostly without an escape."""

    def write(text: str) -> bytes:
        written = render(text)
        if "\\" in written:
            found: str = orjson.loads(written)
            return primitive.text(found)
        return primitive.text(written[1:-1])

    return write


def _bare(render: Render) -> Write:
    return lambda text: primitive.text(render(text))


def _boolean(render: Render) -> Write:
    def write(text: str) -> bytes:
        return TRUE if render(text) == "true" else FALSE

    return write


def _real(render: Render, pack: Callable[[float], bytes]) -> Write:
    """Return what writes a number, which JSON has in quotes if it is none."""

    def write(text: str) -> bytes:
        return pack(float(render(text).strip('"')))

    return write


def _from_json(schema: Schema, render: Render) -> Write:
    def write(text: str) -> bytes | None:
        return _read(schema, render(text))

    return write


def _read(schema: Schema, written: str) -> bytes | None:
    if written == "null":
        return None
    return tree.plain_bytes(schema, orjson.loads(written))


def _array(found: ConnectType, item: ConnectType, lost: Lost) -> Write:
    """Return what writes an array; a null that an item cannot be is its empty value."""
    delimiter = found.delimiter
    schema = found.schema.items or item.schema
    of_item = writer(item, lost)
    before, null = tree.branches(schema)
    empty = b"" if null else tree.document(item.schema, item.empty)

    def write(text: str) -> bytes:
        parts = []
        for one in items(text, delimiter):
            written = None if one is None else of_item(one)
            if written is not None:
                parts.append(before + written if before else written)
            elif null:
                parts.append(null)
            else:
                lost(NO_NULL)
                parts.append(empty)
        return tree.block(parts)

    return write
