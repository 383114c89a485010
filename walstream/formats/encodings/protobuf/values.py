"""Conversions of protobuf's types to values of JSON, as Connect's converter has them.

A value is read as far as its wire type goes, an int or bytes; its type says the rest.
"""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Final

from walstream.formats.debezium.numeric import decimal_text
from walstream.formats.encodings import json_value
from walstream.formats.encodings.protobuf.data import (
    BadProtoData,
    ProtoData,
    double,
    single,
)
from walstream.formats.encodings.protobuf.primitive import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
)

Convert = Callable[[Any], Any]
_EPOCH: Final = date(1970, 1, 1).toordinal()


def _signed(bits: int) -> Convert:
    half, whole = 1 << (bits - 1), 1 << bits

    def convert(value: int) -> int:
        value &= whole - 1
        return value - whole if value >= half else value

    return convert


def _unsigned(bits: int) -> Convert:
    return lambda value: value & ((1 << bits) - 1)


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


def _fixed(*, signed: bool) -> Convert:
    return lambda value: int.from_bytes(value, "little", signed=signed)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise BadProtoData("a string of protobuf that is not UTF-8") from None


SCALARS: Final[Mapping[str, tuple[str, int, Convert, Any]]] = {
    "bool": ("boolean", VARINT, bool, False),
    "bytes": ("bytes", LENGTH, json_value.base64, ""),
    "double": ("double", FIXED64, lambda one: json_value.double(double(one)), 0.0),
    "fixed32": ("int64", FIXED32, _fixed(signed=False), 0),
    "fixed64": ("int64", FIXED64, _fixed(signed=False), 0),
    "float": ("float", FIXED32, lambda one: json_value.single(single(one)), 0.0),
    "int32": ("int32", VARINT, _signed(32), 0),
    "int64": ("int64", VARINT, _signed(64), 0),
    "sfixed32": ("int32", FIXED32, _fixed(signed=True), 0),
    "sfixed64": ("int64", FIXED64, _fixed(signed=True), 0),
    "sint32": ("int32", VARINT, _zigzag, 0),
    "sint64": ("int64", VARINT, _zigzag, 0),
    "string": ("string", LENGTH, _text, ""),
    "uint32": ("int64", VARINT, _unsigned(32), 0),
    "uint64": ("int64", VARINT, _unsigned(64), 0),
}
"""By protobuf's word: Connect's type, the wire type, what converts, and the default."""


def _parts(value: bytes) -> dict[int, Any]:
    """Return the fields of a message of which each is there once."""
    data, found = ProtoData(value), {}
    while data.more:
        number, wire = data.tag()
        found[number] = data.value(wire)
    return found


def _number(parts: dict[int, Any], place: int) -> int:
    found = parts.get(place, 0)
    if isinstance(found, int):
        return found
    raise BadProtoData(
        "a field of a type of Google's or Confluent's that is not a number"
    )


def _decimal(value: bytes) -> str:
    """Read confluent.type.Decimal: its digits, as walstream writes them."""
    parts = _parts(value)
    raw = parts.get(1, b"")
    if not isinstance(raw, bytes):
        raise BadProtoData("a confluent.type.Decimal that is not a number")
    number = int.from_bytes(raw, "big", signed=True)
    scale = _signed(32)(_number(parts, 3))
    return decimal_text(number, scale)


def _date(value: bytes) -> int:
    parts = _parts(value)
    year, month, day = (_number(parts, place) for place in (1, 2, 3))
    try:
        return date(year, month, day).toordinal() - _EPOCH
    except (ValueError, OverflowError):
        raise BadProtoData("a google.type.Date that is not a date") from None


def _time(value: bytes) -> int:
    parts = _parts(value)
    hours, minutes, seconds, nanos = (_number(parts, place) for place in (1, 2, 3, 4))
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + nanos // 1_000_000


def _timestamp(value: bytes) -> int:
    parts = _parts(value)
    seconds: int = _signed(64)(_number(parts, 1))
    nanos = _number(parts, 2)
    return seconds * 1000 + nanos // 1_000_000


def _wrapped(word: str) -> Convert:
    """Return what reads google.protobuf.Int32Value and its like."""
    _, _, convert, default = SCALARS[word]

    def read(value: bytes) -> Any:
        parts = _parts(value)
        return convert(parts[1]) if 1 in parts else default

    return read


_KAFKA: Final = "org.apache.kafka.connect.data."
_WRAPPERS: Final = {
    "BoolValue": "bool",
    "BytesValue": "bytes",
    "DoubleValue": "double",
    "FloatValue": "float",
    "Int32Value": "int32",
    "Int64Value": "int64",
    "StringValue": "string",
    "UInt32Value": "uint32",
    "UInt64Value": "uint64",
}
KNOWN: Final[Mapping[str, tuple[dict[str, Any], Convert]]] = {
    "confluent.type.Decimal": ({"type": "string"}, _decimal),
    "google.protobuf.Timestamp": (
        {"type": "int64", "name": f"{_KAFKA}Timestamp", "version": 1},
        _timestamp,
    ),
    "google.type.Date": (
        {"type": "int32", "name": f"{_KAFKA}Date", "version": 1},
        _date,
    ),
    "google.type.TimeOfDay": (
        {"type": "int32", "name": f"{_KAFKA}Time", "version": 1},
        _time,
    ),
    **{
        f"google.protobuf.{name}": ({"type": SCALARS[word][0]}, _wrapped(word))
        for name, word in _WRAPPERS.items()
    },
}
"""Messages of files that are imported: their schema in Connect, and what reads them."""
