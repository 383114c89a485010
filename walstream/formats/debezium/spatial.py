"""point, the types of PostGIS, and those of pgvector."""

import re
from binascii import b2a_base64
from collections.abc import Callable
from struct import Struct
from typing import Final

from walstream.formats.debezium.float_text import float4, float8

Render = Callable[[str], str]

_POINT: Final = re.compile(r"\(([^,()]+),([^,()]+)\)")
_WKB_POINT: Final = Struct("<BIdd")
_LITTLE: Final = Struct("<I")
_BIG: Final = Struct(">I")
_HAS_SRID: Final = 0x2000_0000
_SHORTEST: Final = 9  # bytes of an EWKB
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?|Infinity)|NaN")
_SPARSE: Final = re.compile(r"\{([^{}]*)\}/([0-9]+)")
_INT16: Final = 32_767

EMPTY_WKB: Final = "AQcAAAAAAAAA"
"""A collection of no geometries, in base64."""
WIDE: Final = "a sparse vector of more than 32,767 dimensions"


def point(text: str) -> str:
    """Write a point as x, y and its WKB."""
    found = _POINT.fullmatch(text)
    if found is None:
        raise ValueError("not a point")
    raw = _WKB_POINT.pack(1, 1, float(found[1]), float(found[2]))
    wkb = b2a_base64(raw, newline=False).decode()
    x, y = float8(found[1]), float8(found[2])
    return f'{{"x":{x},"y":{y},"wkb":"{wkb}","srid":null}}'


def geometry(text: str) -> str:
    """Write EWKB, as PostGIS prints it in hex, and its SRID."""
    raw = bytes.fromhex(text)
    if len(raw) < _SHORTEST:
        raise ValueError("not an EWKB")
    number = _LITTLE if raw[0] else _BIG
    kind: int = number.unpack_from(raw, 1)[0]
    srid = "null"
    if kind & _HAS_SRID:
        signed: int = number.unpack_from(raw, 5)[0]
        srid = str(signed - (1 << 32) if signed >> 31 else signed)
    wkb = b2a_base64(raw, newline=False).decode()
    return f'{{"wkb":"{wkb}","srid":{srid}}}'


def vector(text: str) -> str:
    """Write pgvector's `[1,2.5]` as doubles."""
    return _vector(text, float8)


def half_vector(text: str) -> str:
    """Write a halfvec as floats."""
    return _vector(text, float4)


def _vector(text: str, write: Render) -> str:
    if text[:1] != "[" or text[-1:] != "]":
        raise ValueError("not a vector")
    return f"[{','.join(map(write, text[1:-1].split(',')))}]"


def sparse_vector(lost: Callable[[str], None], *, as_objects: bool = False) -> Render:
    """Return what writes `{1:1.5,3:2}/5`: Connect's numbers of them have 16 bits.

    The map of it is a list of pairs, or of objects of `key` and `value`.
    """

    def render(text: str) -> str:
        found = _SPARSE.fullmatch(text)
        if found is None:
            raise ValueError("not a sparse vector")
        if int(found[2]) > _INT16:
            lost(WIDE)
            return "null"
        entries = []
        for entry in found[1].split(",") if found[1] else ():
            index, value = entry.split(":")
            key, number = int(index), float8(value)
            pair = f'{{"key":{key},"value":{number}}}' if as_objects else ""
            entries.append(pair or f"[{key},{number}]")
        return f'{{"dimensions":{int(found[2])},"vector":[{",".join(entries)}]}}'

    return render


def java_shape(text: str) -> str:
    """Return a line, box, circle, path, polygon or lseg as Java's driver prints it."""
    return _NUMBER.sub(_java_number, text)


def _java_number(found: re.Match[str]) -> str:
    return float8(found[0]).strip('"')
