"""Functions that write the texts of a type as protobuf.

Each is made of the function that writes them as JSON, so both say the same, count what
has no form, and refuse the text of another type. Frequent types have a shorter way.
"""

from collections.abc import Callable

import orjson

from walstream.formats.debezium.composite_text import items
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.connect_type import (
    ConnectType,
    RawBytes,
    Render,
    integer,
)
from walstream.formats.encodings.protobuf import plan, primitive
from walstream.formats.encodings.protobuf.forms import ITEMS
from walstream.formats.encodings.protobuf.plan import ArrayPlan, Scope
from walstream.formats.encodings.protobuf.primitive import FALSE, TRUE
from walstream.formats.encodings.protobuf.shape import DECIMAL, is_decimal

Write = Callable[[str], bytes | None]
"""None: the value has no form, and is null."""


def writer(found: ConnectType, name: str, scope: Scope) -> Write:
    """Return what writes a type's texts; `name` is its own within messages."""
    if found.text:
        return primitive.text
    if found.item is not None:
        return _array(found, found.item, name, scope)
    if is_decimal(found.schema):
        return _decimal(found, plan.type_plan(found.schema, name, scope).write)
    if found.raw is not None:
        return _raw(found.raw)
    return _scalar(found.schema, found.render) or _from_json(found, name, scope)


def _scalar(schema: Schema, render: Render) -> Write | None:
    kind = schema.type
    if kind in plan.BITS:
        return _integer(kind) if render is integer else _number(kind, render)
    if kind == "string":
        return _string(render)
    if kind == "boolean":
        return _boolean(render)
    if kind == "double":
        return _real(render, primitive.double)
    if kind == "float":
        return _real(render, primitive.single)
    return None


def int64(text: str) -> bytes:
    """Write the text of an int8, the most frequent of all."""
    number = int(integer(text))
    if (number if number >= 0 else ~number) >> 63:
        raise ValueError("not an integer of this size")
    return primitive.varint(number)


def _integer(kind: str) -> Write:
    bits = plan.BITS[kind]
    if kind == "int64":
        return int64

    def write(text: str) -> bytes:
        number = int(integer(text))
        if (number if number >= 0 else ~number) >> bits:
            raise ValueError("not an integer of this size")
        return primitive.varint(number)

    return write


def _number(kind: str, render: Render) -> Write:
    def write(text: str) -> bytes:
        return plan.integer(kind, int(render(text)))

    return write


def _raw(read: RawBytes) -> Write:
    def write(text: str) -> bytes | None:
        found = read(text)
        return None if found is None else primitive.raw(found)

    return write


def _decimal(found: ConnectType, of_json: plan.WriteJson) -> Write:
    """Return what writes the digits of a number, as PostgreSQL has them."""
    render = found.render
    is_fixed = found.schema.name == DECIMAL
    scale = int(dict(found.schema.parameters)["scale"]) if is_fixed else 0

    def write(text: str) -> bytes | None:
        whole, point, decimals = text.removeprefix("-").partition(".")
        digits = whole + decimals
        if (
            digits.isdecimal()
            and digits.isascii()
            and (not is_fixed or len(decimals) == scale)
            and (decimals != "") == (point != "")
            and (whole[:1] > "0" or whole == "0")
        ):
            return primitive.text(text)
        written = render(text)
        return None if written == "null" else of_json(orjson.loads(written))

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


def _boolean(render: Render) -> Write:
    def write(text: str) -> bytes:
        return TRUE if render(text) == "true" else FALSE

    return write


def _real(render: Render, pack: Callable[[float], bytes]) -> Write:
    """Return what writes a number, which JSON has in quotes if it is none."""

    def write(text: str) -> bytes:
        return pack(float(render(text).strip('"')))

    return write


def _from_json(found: ConnectType, name: str, scope: Scope) -> Write:
    render, of_json = found.render, plan.type_plan(found.schema, name, scope).write

    def write(text: str) -> bytes | None:
        written = render(text)
        return None if written == "null" else of_json(orjson.loads(written))

    return write


def _array(found: ConnectType, item: ConnectType, name: str, scope: Scope) -> Write:
    """Return what writes an array, in which each item may be null."""
    message = plan.resolve(name, scope)
    made = ArrayPlan(found.schema.items or item.schema, message, scope)
    of_item = writer(item, message.live[ITEMS].type, [*scope, message])
    delimiter = found.delimiter

    def write(text: str) -> bytes:
        found = items(text, delimiter)
        return made.write([None if one is None else of_item(one) for one in found])

    return write
