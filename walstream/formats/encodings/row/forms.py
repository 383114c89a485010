"""Types of columns: their schemas, and what makes their values of a driver's.

A value is made only where the schema's reader gets back what JSON would have: all else
is refused by a ValueError, and stands beside the row.
"""

from binascii import b2a_base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, Final

from walstream.formats.debezium import connect
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.connect_type import DATA, TIME, decimal
from walstream.formats.debezium.numeric import base64
from walstream.formats.encodings.row.column import ColumnKind, RowColumnType
from walstream.formats.plain import plain
from walstream.formats.row import compact

Fit = Callable[[Any], Any]
"""Makes a value of Connect's JSON; raises ValueError for what would not come back."""

_DAYS: Final = date(1970, 1, 1).toordinal()
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - as columns without a zone have it
_DAY_US: Final = 86_400_000_000
_US: Final = 1_000_000
_UTC: Final = "+00:00"


@dataclass(frozen=True, slots=True)
class ColumnForm:
    """The schema of a type's values, and what makes them."""

    schema: Schema  # not optional: its column decides that
    fit: Fit  # of what is not null
    empty: Any  # what stands for a value that is elsewhere
    text: bool = False  # may any text be there?

    def instead(self, value: object) -> Any:
        """Return what stands in the row for a value that is refused."""
        return compact(plain(value)) if self.text else self.empty


def form_of(kind: RowColumnType, *, finite: bool = False) -> ColumnForm:
    """Return the form of a type.

    `finite`: NaN and the infinities are no numbers to who validates records.
    """
    if kind.items is not None:
        inner = form_of(kind.items, finite=finite)
        schema = connect.array(inner.schema.as_optional())
        return ColumnForm(schema, _array(inner.fit), [])
    if kind.kind == "decimal":
        schema = decimal(kind.scale, kind.precision)
        return ColumnForm(schema, _decimal(kind), base64(0))
    if finite and kind.kind == "double":
        return ColumnForm(Schema("double"), _finite, 0.0)
    return _FORMS[kind.kind]


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise ValueError


def _integer(bits: int) -> Fit:
    low, high = -1 << bits, (1 << bits) - 1

    def fit(value: Any) -> int:
        if type(value) is int and low <= value <= high:
            return value
        raise ValueError

    return fit


_LONG: Final = _integer(63)


def _double(value: Any) -> float | str:
    if type(value) is not float:
        raise ValueError
    if isfinite(value):
        return value
    return str(plain(value))


def _finite(value: Any) -> float:
    if type(value) is not float or not isfinite(value):
        raise ValueError
    return value


def _decimal(kind: RowColumnType) -> Fit:
    scale, precision = kind.scale, kind.precision

    def fit(value: Any) -> str:
        if type(value) is not Decimal:
            raise ValueError
        sign, digits, exponent = value.as_tuple()
        # the places tell the scale, and zero has no sign
        if exponent != -scale or len(digits) > max(precision, 1):
            raise ValueError
        number = int("".join(map(str, digits)))
        if sign and not number:
            raise ValueError
        return base64(-number if sign else number)

    return fit


def _text(value: Any) -> str:
    if type(value) is str:
        return value
    found = plain(value)
    if isinstance(found, str):
        return found
    raise ValueError


def _bytes(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return b2a_base64(bytes(value), newline=False).decode()
    raise ValueError


def _date(value: Any) -> int:
    if type(value) is date:
        return value.toordinal() - _DAYS
    raise ValueError


def _time(value: Any) -> int:
    if type(value) is timedelta:  # MySQL's goes beyond a day, and below zero
        found: int = _LONG(_micros(value))  # 292,000 years, and no more
        return found
    if type(value) is time and value.tzinfo is None:
        minutes = value.hour * 60 + value.minute
        return (minutes * 60 + value.second) * _US + value.microsecond
    raise ValueError


def _timestamp(value: Any) -> int:
    if type(value) is datetime and value.tzinfo is None:
        return _micros(value - _EPOCH)
    raise ValueError


def _micros(value: timedelta) -> int:
    return value.days * _DAY_US + value.seconds * _US + value.microseconds


def _zoned(value: Any) -> str:
    if type(value) is not datetime or value.tzinfo is None:
        raise ValueError
    text = value.isoformat()
    return f"{text.removesuffix(_UTC)}Z" if text.endswith(_UTC) else text


def _json(value: Any) -> str:
    return compact(plain(value))


def _array(item: Fit) -> Fit:
    def fit(value: Any) -> list[Any]:
        if type(value) is not list:
            raise ValueError
        return [None if one is None else item(one) for one in value]

    return fit


def _of_text(name: str, fit: Fit) -> ColumnForm:
    return ColumnForm(connect.text(name), fit, "", text=True)


_FORMS: Final[Mapping[ColumnKind, ColumnForm]] = {
    "boolean": ColumnForm(Schema("boolean"), _boolean, empty=False),
    "bytes": ColumnForm(Schema("bytes"), _bytes, ""),
    "date": ColumnForm(connect.number("int32", f"{TIME}Date"), _date, 0),
    "double": ColumnForm(Schema("double"), _double, 0.0),
    "int16": ColumnForm(Schema("int16"), _integer(15), 0),
    "int32": ColumnForm(Schema("int32"), _integer(31), 0),
    "int64": ColumnForm(Schema("int64"), _LONG, 0),
    "json": _of_text(f"{DATA}Json", _json),
    "string": _of_text("", _text),
    "time": ColumnForm(connect.number("int64", f"{TIME}MicroTime"), _time, 0),
    "timestamp": ColumnForm(
        connect.number("int64", f"{TIME}MicroTimestamp"), _timestamp, 0
    ),
    "uuid": _of_text(f"{DATA}Uuid", _text),
    "zoned": ColumnForm(
        connect.text(f"{TIME}ZonedTimestamp"), _zoned, "1970-01-01T00:00:00Z"
    ),
}
