"""Values of a database driver -> values of JSON: `plain`, which never raises.

Any value of any engine becomes something, so that no row can stall a poll. What has no
form of its own here is written as its text.
"""

import base64
import enum
import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_DEEPEST: Final = 100  # lists in lists; a reader of JSON has its limit, too
_SMALLEST_FIXED: Final = -20_000  # exponent; PostgreSQL's smallest is -16383
_SURELY_WRITTEN_BITS: Final = 2000  # Python writes no number of thousands of digits


def plain(value: object) -> Json:
    """Return JSON's null, booleans, numbers, texts, arrays and objects; raise nothing.

    A Decimal is its exact text, without an exponent where the database would print
    none; dates and times are ISO 8601, an interval is [-]HH:MM:SS[.ffffff] with as many
    hours as it has; bytes are base64. NaN and the infinities are texts. What is nested
    deeper than 100 levels is its text.
    """
    return _plain(value, _DEEPEST)


def _plain(value: object, depth: int) -> Json:
    writer = _WRITERS.get(type(value)) or _writer_of(value)
    try:
        return writer(value, depth)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the code of a driver's own type
        return f"<{type(value).__name__}>"


def _writer_of(value: object) -> "_Writer":
    """Find the first of the types that it is an instance of: enumerations come first.

    An enumeration may be a kind of int or str as well.
    """
    if isinstance(value, enum.Enum):
        return _enum
    for kind, writer in _WRITERS.items():
        if isinstance(value, kind):
            return writer
    return _text


def _as_it_is(value: Any, _: int) -> Json:
    return value  # type: ignore[no-any-return] # of one of JSON's types


def _int(value: int, _: int) -> Json:
    if value.bit_length() > _SURELY_WRITTEN_BITS:
        try:
            int.__repr__(value)
        except ValueError:
            return hex(value)
    return value


def _float(value: float, _: int) -> Json:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _decimal(value: Decimal, _: int) -> Json:
    text = str(value)
    # 0E-10 is what Python makes of a database's 0.0000000000
    if "E-" in text and value.adjusted() > _SMALLEST_FIXED:
        return f"{value:f}"
    return text


def _moment(value: date | time, _: int) -> Json:
    return value.isoformat()


def _interval(value: timedelta, _: int) -> Json:
    sign, value = ("-", -value) if value.days < 0 else ("", value)
    minutes, seconds = divmod(value.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{sign}{value.days * 24 + hours:02}:{minutes:02}:{seconds:02}"
    return f"{text}.{value.microseconds:06}" if value.microseconds else text


def _bytes(value: bytes | bytearray | memoryview, _: int) -> Json:
    return base64.b64encode(bytes(value)).decode()


def _list(value: Iterable[object], depth: int) -> Json:
    if not depth:
        return str(value)
    return [_plain(item, depth - 1) for item in value]


def _set(value: Iterable[object], depth: int) -> Json:
    if not depth:
        return str(value)
    return sorted((_plain(item, depth - 1) for item in value), key=_key)


def _dict(value: Mapping[Any, object], depth: int) -> Json:
    if not depth:
        return str(value)
    return {
        _key(_plain(key, depth - 1)): _plain(item, depth - 1)
        for key, item in value.items()
    }


def _key(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _enum(value: enum.Enum, depth: int) -> Json:
    if not depth:
        return str(value)
    return _plain(value.value, depth - 1)


def _text(value: object, _: int) -> Json:
    return str(value)


_Writer = Callable[[Any, int], Json]
_WRITERS: Final[dict[type, _Writer]] = {
    type(None): _as_it_is,
    bool: _as_it_is,
    int: _int,
    str: _as_it_is,
    float: _float,
    Decimal: _decimal,
    datetime: _moment,
    date: _moment,
    time: _moment,
    timedelta: _interval,
    bytes: _bytes,
    bytearray: _bytes,
    memoryview: _bytes,
    UUID: _text,
    list: _list,
    tuple: _list,
    set: _set,
    frozenset: _set,
    dict: _dict,
    Mapping: _dict,
}
