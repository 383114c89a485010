"""PostgreSQL's text of a value, as a Python type that the application asks for.

Conversion is total: what the type cannot hold exactly, or does not mean, raises Unfit
with the reason. A reason never holds the value: it ends up in logs.
"""

import json
import re
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin
from uuid import UUID

Converter = Callable[[str], Any]

# the texts that PostgreSQL prints under the settings of walstream's sessions
_INTEGER: Final = re.compile(r"-?[0-9]+")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,9})?|NaN|-?Infinity")
_DATE: Final = re.compile(r"([0-9]{4,})-[0-9]{2}-[0-9]{2}( BC)?")
_CLOCK: Final = r"([0-9]{2}):[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?"
_OFFSET: Final = r"(?:[+-][0-9]{2}(?::[0-9]{2}){0,2})?"
_TIME: Final = re.compile(_CLOCK + _OFFSET)
_TIMESTAMP: Final = re.compile(rf"([0-9]{{4,}})-[0-9-]{{5}} {_CLOCK}{_OFFSET}( BC)?")
_INTERVAL: Final = re.compile(
    r"(?:(?P<years>[+-]?\d+) years? ?)?(?:(?P<months>[+-]?\d+) mons? ?)?"
    r"(?:(?P<days>[+-]?\d+) days? ?)?"
    r"(?:(?P<sign>[+-]?)(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d)"
    r"(?:\.(?P<fraction>\d{1,6}))?)?",
    re.ASCII,
)
_ARRAY_BOUNDS: Final = re.compile(r"(\[-?\d+:-?\d+\])+=", re.ASCII)
_ARRAY_PART: Final = re.compile(
    r'"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^{},"\\]+)|(?P<mark>[{},])', re.DOTALL
)
_LAST_YEAR_DIGITS: Final = 4
_INFINITE: Final = ("infinity", "-infinity")


class Unfit(ValueError):
    """Error of a text that is not such a value, or that the type cannot hold."""


def converter(kind: object) -> Converter:
    """Find what turns a text into `kind`; raise TypeError for a type unknown here."""
    found = CONVERTERS.get(kind)
    if found is not None:
        return found
    supertype = getattr(kind, "__supertype__", None)  # of a NewType
    if supertype is not None:
        return converter(supertype)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is list and len(arguments) == 1:
        element, nullable = optional(arguments[0])
        return _array_of(element, nullable=nullable)
    if origin is dict:
        return _json_object
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    raise TypeError(f"no conversion to {shown(kind)} is known")


def optional(annotation: object) -> tuple[object, bool]:
    """Split `T | None` into T and whether None is allowed."""
    if get_origin(annotation) not in {Union, UnionType}:
        return annotation, annotation in {Any, object}
    arguments = get_args(annotation)
    others = [argument for argument in arguments if argument is not NoneType]
    if len(others) != 1:
        raise TypeError(f"no conversion to {shown(annotation)} is known")
    return others[0], len(others) < len(arguments)


def shown(kind: object) -> str:
    """Name a type as its source does."""
    return kind.__name__ if type(kind) is type else str(kind)


def _same(text: str) -> str:
    return text


def _boolean(text: str) -> bool:
    if text not in {"t", "f"}:
        raise Unfit("the text is not a boolean")
    return text == "t"


def _integer(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise Unfit("the text is not a whole number")
    return int(text)


def _float(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise Unfit("the text is not a number")
    value = float(text)
    if value in {float("inf"), float("-inf")} and not text.endswith("Infinity"):
        raise Unfit("the number is too large")
    return value


def _decimal(text: str) -> Decimal:
    if not _NUMBER.fullmatch(text):
        raise Unfit("the text is not a number")
    return Decimal(text)


def _held(text: str, year: str, era: str | None) -> None:
    if text in _INFINITE:
        raise Unfit("it is infinite")
    if era:
        raise Unfit("it is before the year 1")
    if len(year) > _LAST_YEAR_DIGITS:
        raise Unfit("it is after the year 9999")


def _date(text: str) -> date:
    found = _DATE.fullmatch(text)
    if found is None and text not in _INFINITE:
        raise Unfit("the text is not a date")
    _held(text, *(found.groups() if found else ("", None)))
    return date.fromisoformat(text)


def _datetime(text: str) -> datetime:
    found = _TIMESTAMP.fullmatch(text)
    if found is None and text not in _INFINITE:
        raise Unfit("the text is not a timestamp")
    _held(text, *(found.group(1, 3) if found else ("", None)))
    return datetime.fromisoformat(text)


def _time(text: str) -> time:
    found = _TIME.fullmatch(text)
    if found is None:
        raise Unfit("the text is not a time of day")
    if found[1] == "24":
        raise Unfit("Python has no 24:00:00")
    return time.fromisoformat(text)


def _timedelta(text: str) -> timedelta:
    if text in _INFINITE:
        raise Unfit("it is infinite")
    found = _INTERVAL.fullmatch(text)
    if found is None or not text:
        raise Unfit("the text is not an interval")
    if int(found["years"] or 0) or int(found["months"] or 0):
        raise Unfit("years and months have no fixed length")
    clock = timedelta(
        hours=int(found["hours"] or 0),
        minutes=int(found["minutes"] or 0),
        seconds=int(found["seconds"] or 0),
        microseconds=int((found["fraction"] or "").ljust(6, "0")),
    )
    days = timedelta(days=int(found["days"] or 0))
    return days - clock if found["sign"] == "-" else days + clock


def _bytes(text: str) -> bytes:
    if not text.startswith("\\x"):
        raise Unfit("the text is not bytea in hex")
    value = bytes.fromhex(text[2:])
    if len(value) * 2 + 2 != len(text):  # fromhex passes over spaces
        raise Unfit("the text is not bytea in hex")
    return value


def _json_object(text: str) -> dict[str, object]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise Unfit("the JSON is not an object")
    return value


def _json_array(text: str) -> list[Any]:
    value = json.loads(text)
    if not isinstance(value, list):
        raise Unfit("the JSON is not an array")
    return value


def _array_of(kind: object, *, nullable: bool) -> Converter:
    if get_origin(kind) is list:
        ((inner, inner_nullable),) = map(optional, get_args(kind))
        return _nested(_array_of(inner, nullable=inner_nullable))
    convert = converter(kind)

    def read(text: str) -> list[Any]:
        return [
            _element(part, convert, nullable=nullable) for part in _array_parts(text)
        ]

    return read


def _nested(convert: Converter) -> Converter:
    def read(text: str) -> list[Any]:
        bounds = _ARRAY_BOUNDS.match(text)
        plain = text[bounds.end() :] if bounds else text
        return [convert(part) for part in _rows(plain)]

    return read


def _rows(text: str) -> Iterator[str]:
    """Cut an array of arrays into the texts of its elements."""
    if not text.startswith("{") or not text.endswith("}"):
        raise Unfit("the text is not an array")
    depth, start = 0, 0
    for part in _ARRAY_PART.finditer(text):
        mark = part["mark"]
        depth += (mark == "{") - (mark == "}")
        if mark == "{" and depth == 2:  # noqa: PLR2004 # inside of the outer braces
            start = part.start()
        elif mark == "}" and depth == 1:
            yield text[start : part.end()]
        elif depth == 1 and mark is None:
            raise Unfit("the array has fewer dimensions")


def _element(part: str | None, convert: Converter, *, nullable: bool) -> Any:
    if part is not None:
        return convert(part)
    if not nullable:
        raise Unfit("an element is NULL: ask for list[... | None]")
    return None


def _array_parts(text: str) -> Iterator[str | None]:
    """Yield the elements of a one-dimensional array; None for NULL."""
    bounds = _ARRAY_BOUNDS.match(text)
    at = bounds.end() if bounds else 0
    if text[at : at + 1] != "{" or not text.endswith("}"):
        raise Unfit("the text is not an array")
    at += 1
    end = len(text) - 1
    while at < end:
        part = _ARRAY_PART.match(text, at, end)
        if part is None:
            raise Unfit("the text is not an array")
        if part["mark"] is not None:
            raise Unfit("the array has more dimensions")
        if part["quoted"] is not None:
            yield re.sub(r"\\(.)", r"\1", part["quoted"], flags=re.DOTALL)
        else:
            yield None if part["bare"] == "NULL" else part["bare"]
        if text[part.end()] != ("," if part.end() < end else "}"):
            raise Unfit("the text is not an array")
        at = part.end() + 1


CONVERTERS: Final[dict[object, Converter]] = {
    str: _same,
    object: _same,
    Any: _same,
    bool: _boolean,
    int: _integer,
    float: _float,
    Decimal: _decimal,
    date: _date,
    datetime: _datetime,
    time: _time,
    timedelta: _timedelta,
    UUID: UUID,
    bytes: _bytes,
    dict: _json_object,
    list: _json_array,
}
