"""PostgreSQL's text of a value -> JSON, by the value's type: `renderer`, never raises.

A type without a form of its own here, and a text that is not of its type's form, is
written as a JSON text.
"""

import re
from collections.abc import Callable
from typing import Final

import orjson

from walstream.formats.column_type import ARRAY

Renderer = Callable[[str], bytes]

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING: Final = r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
_STRING_OR_NUMBER: Final = re.compile(f"({_STRING})|{_NUMBER.pattern}")
_DATE: Final = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}) ([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?)(?:\+00)?"
)
_BOOLEANS: Final = {"t": b"true", "f": b"false"}
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_BOUNDS: Final = re.compile(r"(?:\[-?[0-9]+:-?[0-9]+\])+=(?=\{)")
_LINE_ENDS: Final = {ord("\n"): " ", ord("\r"): " "}
_DEEPEST: Final = 100  # lists in lists; a reader of JSON has its limit, too
_ROOM: Final = 1024 - _DEEPEST  # to orjson's


def renderer(oid: int) -> Renderer:
    """Return what writes the texts of a built-in type, named by its oid, as JSON."""
    if oid in _ELEMENTS:
        return _array(_SCALARS.get(_ELEMENTS[oid], json_text))
    if oid == _BOXES:
        return _array(json_text, ";")
    if oid in _TEXT_ARRAYS:
        return _array(json_text)
    return _SCALARS.get(oid, json_text)


def json_text(value: str) -> bytes:
    """Write it as a text, whatever its type."""
    return orjson.dumps(value)


def _boolean(value: str) -> bytes:
    return _BOOLEANS.get(value) or json_text(value)


def _number(value: str) -> bytes:
    """Write it unchanged: no digit is lost. NaN and the infinities are texts."""
    return value.encode() if _NUMBER.fullmatch(value) else json_text(value)


def _date(value: str) -> bytes:
    if _DATE.fullmatch(value):
        return b'"%bT00:00:00Z"' % value.encode()
    return json_text(value)


def _moment(value: str) -> bytes:
    """Write RFC 3339, or outside of its years PostgreSQL's text."""
    found = _MOMENT.fullmatch(value)
    return f'"{found[1]}T{found[2]}Z"'.encode() if found else json_text(value)


def _json(value: str) -> bytes:
    """Embed a document unchanged, with every digit, in one line."""
    if not _is_json(value):
        return json_text(value)
    if "\n" in value or "\r" in value:  # between tokens: texts have none
        value = value.translate(_LINE_ENDS)
    return value.encode()


def _is_json(value: str) -> bool:
    if _is_read(value):
        return True
    # orjson also refuses what is JSON: numbers above 1e308, halves of surrogate pairs
    plain = _STRING_OR_NUMBER.sub(lambda found: '""' if found[1] else "[]", value)
    return _is_read(plain)


def _is_read(value: str) -> bool:
    try:
        orjson.loads(value)
        if value.count("[") + value.count("{") > _DEEPEST:
            orjson.loads("[" * _ROOM + value + "]" * _ROOM)
    except ValueError:
        return False
    return True


def _array(element: Renderer, delimiter: str = ",") -> Renderer:
    """Write arrays, of any dimensions and bounds, as arrays of JSON."""
    token = re.compile(
        rf'[{{}}{delimiter}]|"(?:[^"\\]|\\.)*"|[^{{}}{delimiter}"]+', re.DOTALL
    )
    signs = {"{": "[", "}": "]", delimiter: ",", "NULL": "null"}

    def write(found: re.Match[str]) -> str:
        text = found[0]
        if text in signs:
            return signs[text]
        if text[0] == '"':
            text = _ESCAPE.sub(r"\1", text[1:-1])
        return element(text).decode()

    def render(value: str) -> bytes:
        bounds = _BOUNDS.match(value)
        literal = value[bounds.end() :] if bounds else value
        if not literal.startswith("{"):
            return json_text(value)
        written = token.sub(write, literal)
        return written.encode() if _is_json(written) else json_text(value)

    return render


_SCALARS: Final[dict[int, Renderer]] = {
    16: _boolean,
    20: _number,  # int8
    21: _number,  # int2
    23: _number,  # int4
    114: _json,
    700: _number,  # float4
    701: _number,  # float8
    1082: _date,
    1114: _moment,  # timestamp
    1184: _moment,  # timestamptz, printed in UTC
    3802: _json,  # jsonb
}
# arrays of those, by the array's oid
_ELEMENTS: Final = {
    1000: 16,
    1016: 20,
    1005: 21,
    1007: 23,
    199: 114,
    1021: 700,
    1022: 701,
    1182: 1082,
    1115: 1114,
    1185: 1184,
    3807: 3802,
}
_BOXES: Final = 1020  # the one array whose items stand between semicolons
# the others that are built in: bytea, text, numeric, uuid, inet, ranges …
_TEXT_ARRAYS: Final = frozenset(
    {
        ARRAY,
        *(143, 210, 270, 271, 272, 273, 629, 651, 719, 775, 791, 1001, 1002, 1003),
        *(1006, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 1015, 1017, 1018, 1019, 1027),
        *(1028, 1034, 1040, 1041, 1183, 1187, 1231, 1263, 1270, 1561, 1563, 2201, 2207),
        *(2208, 2209, 2210, 2211, 2949, 2951, 3221, 3643, 3644, 3645, 3735, 3770, 3905),
        *(3907, 3909, 3911, 3913, 3927, 4073, 4090, 4097, 4192, 5039, 6150, 6151, 6152),
        *(6153, 6155, 6157),
    }
)
