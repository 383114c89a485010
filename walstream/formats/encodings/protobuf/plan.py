"""A type's numbers, once they are known -> what writes its values, as JSON has them.

For what is written once for a table, for records that are rare, and for types that have
no writer of their own in `columns`.
"""

from binascii import a2b_base64
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from walstream.errors import WalstreamError
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.connect_value import text_of
from walstream.formats.encodings.protobuf import primitive
from walstream.formats.encodings.protobuf.forms import (
    ENTRIES,
    ITEMS,
    KEY,
    NULLS,
    VALUE,
)
from walstream.formats.encodings.protobuf.message import ProtoField, ProtoMessage
from walstream.formats.encodings.protobuf.primitive import (
    FALSE,
    FIXED32,
    FIXED64,
    LENGTH,
    TRUE,
    VARINT,
    ZERO,
)
from walstream.formats.encodings.protobuf.shape import is_decimal

Scope = Sequence[ProtoMessage]
"""The messages around a type, the innermost last."""
WriteJson = Callable[[Any], bytes]

BITS: Final = {"int16": 15, "int32": 31, "int64": 63}
_WIRES: Final = {
    "bool": VARINT,
    "double": FIXED64,
    "float": FIXED32,
    "int32": VARINT,
    "int64": VARINT,
}
_NOT_THERE: Final = -1


class TypePlan:
    """Writes the values of a type: behind a length, if it has one."""

    __slots__ = ("empty", "wire", "write")

    def __init__(self, wire: int, write: WriteJson, empty: bytes = ZERO) -> None:
        self.wire = wire
        self.write = write
        self.empty = empty
        """What stands for a value that is not there, where one has to be."""


class FieldPlan:
    """Writes one field."""

    __slots__ = ("default", "name", "number", "optional", "plan", "tag")

    def __init__(
        self, name: str, field: ProtoField, plan: TypePlan, *, optional: bool
    ) -> None:
        self.name = name
        self.number = field.number
        self.plan = plan
        self.optional = optional
        repeated = field.label == "repeated"
        wire = LENGTH if repeated else plan.wire
        self.tag = primitive.tag(field.number, wire)
        implicit = not field.label and field.type in {*_WIRES, "string", "bytes"}
        self.default = plan.empty if implicit else None
        """What is left out, since readers take it for granted; None: nothing is."""

    def write(self, value: Any) -> bytes:
        """Write a field's value, as JSON has it; raise ValueError for another type's.

        Of what is left out nothing is written.
        """
        if value is None:
            if not self.optional:
                raise ValueError("not a value")
            return b""
        return self.of(self.plan.write(value))

    def of(self, written: bytes) -> bytes:
        """Return a field of a value that is written."""
        return b"" if written == self.default else self.tag + written


class StructPlan:
    """Writes the fields of a message, in the order of their numbers."""

    def __init__(self, schema: Schema, message: ProtoMessage, around: Scope) -> None:
        """`message` is what the schema became, with its numbers."""
        scope = [*around, message]
        found = message.live
        self.fields = sorted(
            (
                _field_plan(name, told, _of(found, name), scope)
                for name, told in schema.fields
            ),
            key=lambda one: one.number,
        )

    def body(self, value: Any) -> bytes:
        """Write a message whose JSON this is, without its length."""
        return b"".join([one.write(value[one.name]) for one in self.fields])

    def document(self, payload: bytes | str) -> bytes:
        """Write one whose JSON this is; raise ValueError for another type's."""
        return self.body(orjson.loads(payload))


def _field_plan(
    name: str, schema: Schema, field: ProtoField, scope: Scope
) -> FieldPlan:
    plan = type_plan(schema, field.type, scope)
    return FieldPlan(name, field, plan, optional=schema.optional)


def type_plan(schema: Schema, name: str, scope: Scope) -> TypePlan:
    """Return what writes the values of a type, whose name within messages this is."""
    if is_decimal(schema):
        return TypePlan(LENGTH, _decimal(schema))
    if schema.type == "struct":
        return TypePlan(LENGTH, _message(schema, resolve(name, scope), scope))
    if schema.items is not None:
        return TypePlan(LENGTH, _array(schema.items, resolve(name, scope), scope))
    if schema.keys is not None and schema.values is not None:
        made = _map(schema.keys, schema.values, resolve(name, scope), scope)
        return TypePlan(LENGTH, made)
    return _scalar(schema.type)


def resolve(name: str, scope: Scope) -> ProtoMessage:
    """Find a message by its name, from the innermost of those around it on."""
    for around in reversed(scope):
        found = around.message(name)
        if found is not None:
            return found
    raise WalstreamError(f"the message {name!r} is not declared: a defect")


def _of(fields: dict[str, ProtoField], name: str) -> ProtoField:
    try:
        return fields[name]
    except KeyError:
        raise WalstreamError(f"the field {name!r} has no number: a defect") from None


def _scalar(kind: str) -> TypePlan:
    if kind in BITS:
        return TypePlan(VARINT, lambda value: integer(kind, value))
    if kind == "boolean":
        return TypePlan(VARINT, lambda value: TRUE if value else FALSE)
    if kind == "string":
        return TypePlan(LENGTH, primitive.text)
    if kind == "bytes":
        return TypePlan(LENGTH, lambda value: primitive.raw(a2b_base64(value)))
    if kind == "double":
        write: WriteJson = lambda value: primitive.double(float(value))  # noqa: E731
        return TypePlan(FIXED64, write, bytes(8))
    return TypePlan(FIXED32, lambda value: primitive.single(float(value)), bytes(4))


def integer(kind: str, value: int) -> bytes:
    """Write a number of so many bits; raise ValueError for a larger one."""
    if (value if value >= 0 else ~value) >> BITS[kind]:
        raise ValueError("not an integer of this size")
    return primitive.varint(value)


def _decimal(schema: Schema) -> WriteJson:
    """Return what writes the digits of a number, whose bytes JSON has."""
    told = {"name": schema.name, "parameters": dict(schema.parameters)}

    def write(value: Any) -> bytes:
        return primitive.text(text_of(value, told) or "")

    return write


def _message(schema: Schema, message: ProtoMessage, scope: Scope) -> WriteJson:
    plan = StructPlan(schema, message, scope)
    return lambda value: primitive.raw(plan.body(value))


class ArrayPlan:
    """Writes arrays: their items, and the places of those that are null."""

    def __init__(self, items: Schema, message: ProtoMessage, around: Scope) -> None:
        fields = message.live
        field, nulls = _of(fields, ITEMS), _of(fields, NULLS)
        self.plan = type_plan(items, field.type, [*around, message])
        self._packed = self.plan.wire != LENGTH
        self._tag = primitive.tag(field.number, LENGTH)
        self._nulls_tag = primitive.tag(nulls.number, LENGTH)
        self._nulls_first = nulls.number < field.number

    def write(self, values: Sequence[bytes | None]) -> bytes:
        """Write items that are written; None is null."""
        empty = self.plan.empty
        items = [empty if one is None else one for one in values]
        if self._packed:
            written = b"".join(items)
            found = self._tag + primitive.raw(written) if items else b""
        else:
            found = b"".join([self._tag + one for one in items])
        nulls = [primitive.varint(at) for at, one in enumerate(values) if one is None]
        if nulls:
            told = self._nulls_tag + primitive.raw(b"".join(nulls))
            found = told + found if self._nulls_first else found + told
        return primitive.raw(found)


def _array(items: Schema, message: ProtoMessage, scope: Scope) -> WriteJson:
    plan = ArrayPlan(items, message, scope)
    of_item = plan.plan.write

    def write(value: Any) -> bytes:
        return plan.write([None if one is None else of_item(one) for one in value])

    return write


def _map(
    keys: Schema, values: Schema, message: ProtoMessage, around: Scope
) -> WriteJson:
    scope = [*around, message]
    field = _of(message.live, ENTRIES)
    told = Schema("struct", fields=((KEY, keys), (VALUE, values)))
    plan = StructPlan(told, resolve(field.type, scope), scope)
    tag = primitive.tag(field.number, LENGTH)

    def write(value: Any) -> bytes:
        pairs = value.items() if isinstance(value, dict) else value
        entries = [plan.body({KEY: one, VALUE: other}) for one, other in pairs]
        return primitive.raw(b"".join([tag + primitive.raw(one) for one in entries]))

    return write
