"""A value of Connect's JSON -> PostgreSQL's text, as far as its schema tells the type.

Without a schema a number is a number and a text a text: base64 is not known from words,
nor days from an int. With one, these do not come back as they were: an hstore written
as JSON, the leading zeros of varbit, intervals as numbers, the bounds and dimensions of
arrays, and what `binary` or `decimal` made texts.
"""

from binascii import a2b_base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any, Final

from walstream.formats.debezium.calendar_text import (
    DAY_US,
    civil,
    iso_date,
    iso_moment,
    iso_time,
)
from walstream.formats.debezium.composite_text import array_text, hstore_text
from walstream.formats.debezium.float_digits import float_digits
from walstream.formats.debezium.numeric import decimal_text
from walstream.formats.debezium.temporal import INFINITE_DAYS, INFINITE_US

FromJson = Callable[[Any, Mapping[str, Any]], str]

_PLAIN_DIGITS: Final = {4: 6, 8: 15}  # from there on they write an exponent
_SMALL: Final = -4
_UNBOUNDED: Final = (1 << 31) - 1
_DAYS: Final = {number: text for text, number in INFINITE_DAYS.items()}
_MICROS: Final = {number: text for text, number in INFINITE_US.items()}
_NANOS: Final = {(1 << 63) - 1: "infinity", -(1 << 63): "-infinity"}
_INFINITE_ISO: Final = {
    **{text: text for text in INFINITE_US},
    **{f"{iso_date(number)}Z": text for text, number in INFINITE_DAYS.items()},
    **{iso_moment(number): text for text, number in INFINITE_US.items()},
}
_NONE: Final[Mapping[str, Any]] = {}


def text_of(value: Any, schema: Mapping[str, Any] = _NONE) -> str | None:
    """Return the text; raise ValueError, TypeError or KeyError for another shape."""
    if value is None:
        return None
    read = _BY_NAME.get(schema.get("name", "")) or _BY_TYPE.get(schema.get("type", ""))
    if read is not None:
        return read(value, schema)
    if isinstance(value, list):
        inner: Mapping[str, Any] = schema.get("items", _NONE)
        return array_text([text_of(one, inner) for one in value])
    return _object(value) if isinstance(value, dict) else _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Decimal):
        return _exactly(value)
    if isinstance(value, str | int):
        return str(value)
    raise TypeError


def _exactly(value: Decimal) -> str:
    """Write a number that may be a float8's, or a numeric with more digits."""
    near = float(value)
    if isfinite(near) and Decimal(repr(near)) == value:
        return _float(near)
    return f"{value:f}"


def _object(value: dict[str, Any]) -> str:
    """Read a struct by its fields, or an hstore."""
    if value.keys() == {"scale", "value"}:
        return _variable(value, _NONE)
    if value.keys() == {"x", "y", "wkb", "srid"}:
        return _point(value, _NONE)
    if value.keys() == {"wkb", "srid"}:
        return _geometry(value, _NONE)
    return _hstore(value, _NONE)


def _hstore(value: Any, _: Mapping[str, Any]) -> str:
    return hstore_text([(key, text_of(one)) for key, one in value.items()])


def _bytes(value: Any, _: Mapping[str, Any]) -> str:
    return f"\\x{a2b_base64(value, strict_mode=True).hex()}"


def _real(value: Any, _: Mapping[str, Any]) -> str:
    is_number = isinstance(value, int | float | Decimal)
    return _float(float(value)) if is_number else _plain(value)


def _single(value: Any, _: Mapping[str, Any]) -> str:
    is_number = isinstance(value, int | float | Decimal)
    return _float(float(value), size=4) if is_number else _plain(value)


def _float(value: float, size: int = 8) -> str:
    """Write a number as float8out does, or float4out, by the bytes of its type."""
    if not isfinite(value):
        raise ValueError("not a number")
    negative, places, power = float_digits(value, size).as_tuple()
    plain_digits = _PLAIN_DIGITS[size]
    digits, sign = "".join(map(str, places)), "-" if negative else ""
    exponent = int(power) + len(digits) - 1 if digits != "0" else 0
    if _SMALL <= exponent < plain_digits:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        whole = digits[: exponent + 1].ljust(exponent + 1, "0")
        decimals = digits[exponent + 1 :]
        return f"{sign}{whole}.{decimals}" if decimals else sign + whole
    point = f".{digits[1:]}" if digits[1:] else ""
    return f"{sign}{digits[0]}{point}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"


def _number(value: str) -> int:
    raw = a2b_base64(value, strict_mode=True)
    return int.from_bytes(raw, "big", signed=True)


def _fixed(value: Any, schema: Mapping[str, Any]) -> str:
    if isinstance(value, int | Decimal):  # `decimal.format` of the converter is NUMERIC
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    return decimal_text(_number(value), int(schema["parameters"]["scale"]))


def _variable(value: Any, _: Mapping[str, Any]) -> str:
    return decimal_text(_number(value["value"]), int(value["scale"]))


def _bits(value: Any, schema: Mapping[str, Any]) -> str:
    number = int.from_bytes(a2b_base64(value, strict_mode=True), "little")
    length = int(schema["parameters"]["length"])
    return f"{number:0{length if length < _UNBOUNDED else 1}b}"


def _point(value: Any, _: Mapping[str, Any]) -> str:
    return f"({text_of(value['x'])},{text_of(value['y'])})"


def _geometry(value: Any, _: Mapping[str, Any]) -> str:
    return a2b_base64(value["wkb"], strict_mode=True).hex().upper()


def _vector(value: Any, _: Mapping[str, Any]) -> str:
    return f"[{','.join(_float(float(one)) for one in value)}]"


def _sparse(value: Any, _: Mapping[str, Any]) -> str:
    entries = [f"{index}:{_float(float(one))}" for index, one in value["vector"]]
    return f"{{{','.join(entries)}}}/{value['dimensions']}"


def _date(value: Any, _: Mapping[str, Any]) -> str:
    return _DAYS.get(value) or _dated(value, "")


def _dated(days: int, behind: str) -> str:
    year, month, day = civil(days)
    shown, era = (1 - year, " BC") if year <= 0 else (year, "")
    return f"{shown:04}-{month:02}-{day:02}{behind}{era}"


def _time(unit: int) -> FromJson:
    """Return what reads a time of so many units a microsecond, or of 1 / -unit."""

    def read(value: Any, _: Mapping[str, Any]) -> str:
        micros = value // unit if unit > 0 else value * -unit
        return "24:00:00" if micros == DAY_US else iso_time(micros)

    return read


def _timestamp(unit: int, infinite: Mapping[int, str]) -> FromJson:
    def read(value: Any, _: Mapping[str, Any]) -> str:
        if value in infinite:
            return infinite[value]
        days, rest = divmod(value // unit if unit > 0 else value * -unit, DAY_US)
        return _dated(days, f" {iso_time(rest)}")

    return read


def _iso(value: Any, _: Mapping[str, Any]) -> str:
    """Read `+12020-02-29T03:04:05.6Z`, and what has no date or no time."""
    text = str(value)
    if text in _INFINITE_ISO:
        return _INFINITE_ISO[text]
    if text[-1:] != "Z":
        raise ValueError("not UTC")
    day, _t, clock = text[:-1].rpartition("T")
    if not day and "-" not in clock:
        return clock
    if not day:
        day, clock = clock, ""
    year, month, date = day.rsplit("-", 2)
    number = int(year)
    shown, era = (1 - number, " BC") if number <= 0 else (number, "")
    clock = _trimmed(clock)
    return f"{shown:04}-{month}-{date}{f' {clock}' if clock else ''}{era}"


def _trimmed(clock: str) -> str:
    return clock.rstrip("0").removesuffix(".") if "." in clock else clock


def _zoned(value: Any, schema: Mapping[str, Any]) -> str:
    text = _iso(value, schema)
    if text in INFINITE_US:
        return text
    bare = text.removesuffix(" BC")
    return f"{bare}+00{text[len(bare) :]}"


def _duration(value: Any, _: Mapping[str, Any]) -> str:
    """Write hours, minutes and seconds: months and days are no longer known."""
    seconds, fraction = divmod(abs(value), 1_000_000)
    minutes, second = divmod(seconds, 60)
    decimals = f".{fraction:06}".rstrip("0") if fraction else ""
    sign = "-" if value < 0 else ""
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}:{second:02}{decimals}"


_DATA: Final = "io.debezium.data."
_TIMES: Final = "io.debezium.time."
_KAFKA: Final = "org.apache.kafka.connect.data."
_MILLIS_INFINITE: Final = {number // 1000: text for number, text in _MICROS.items()}
_BY_NAME: Final[dict[str, FromJson]] = {
    f"{_DATA}Bits": _bits,
    f"{_DATA}DoubleVector": _vector,
    f"{_DATA}FloatVector": _vector,
    f"{_DATA}SparseDoubleVector": _sparse,
    f"{_DATA}VariableScaleDecimal": _variable,
    f"{_DATA}geometry.Geography": _geometry,
    f"{_DATA}geometry.Geometry": _geometry,
    f"{_DATA}geometry.Point": _point,
    f"{_KAFKA}Date": _date,
    f"{_KAFKA}Decimal": _fixed,
    f"{_KAFKA}Time": _time(-1000),
    f"{_KAFKA}Timestamp": _timestamp(-1000, _MILLIS_INFINITE),
    f"{_TIMES}Date": _date,
    f"{_TIMES}IsoDate": _iso,
    f"{_TIMES}IsoTime": _iso,
    f"{_TIMES}IsoTimestamp": _iso,
    f"{_TIMES}MicroDuration": _duration,
    f"{_TIMES}MicroTime": _time(1),
    f"{_TIMES}MicroTimestamp": _timestamp(1, _MICROS),
    f"{_TIMES}NanoTime": _time(1000),
    f"{_TIMES}NanoTimestamp": _timestamp(1000, _NANOS),
    f"{_TIMES}Time": _time(-1000),
    f"{_TIMES}Timestamp": _timestamp(-1000, _MILLIS_INFINITE),
    f"{_TIMES}ZonedTime": _zoned,
    f"{_TIMES}ZonedTimestamp": _zoned,
}
_BY_TYPE: Final[dict[str, FromJson]] = {
    "bytes": _bytes,
    "double": _real,
    "float": _single,
    "map": _hstore,  # whatever its keys are
}
