"""A floating-point number as Java writes it: `1.0E10`, where PostgreSQL has `1e+10`.

The digits are PostgreSQL's, the fewest that name the number; so does Java from 19 on.
"""

import re
from struct import Struct
from typing import Final

_PLAIN: Final = re.compile(r"-?[1-9][0-9]{0,6}\.[0-9]{1,10}|-?0\.[1-9][0-9]{0,16}")
_NUMBER: Final = re.compile(r"(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?")
_SPECIAL: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_FIXED: Final = (-3, 7)  # powers of ten that are written without an exponent
_TINY_8: Final = -323  # where one digit may be too few: subnormal numbers
_TINY_4: Final = -44
_FLOAT: Final = Struct("f")


def float8(text: str) -> str:
    """Write a float8's text; raise ValueError for what is none."""
    return text if _PLAIN.fullmatch(text) else _rewritten(text, 8)


def float4(text: str) -> str:
    """Write a float4's text, likewise."""
    return text if _PLAIN.fullmatch(text) else _rewritten(text, 4)


def python_float(value: float) -> str:
    """Write a number of Python's own."""
    text = repr(value)
    return float8(
        {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, text)
    )


def _rewritten(text: str, size: int) -> str:
    found = _NUMBER.fullmatch(text)
    if found is None:
        if text in _SPECIAL:
            return f'"{text}"'
        raise ValueError("not a number")
    sign, whole, decimals, power = found.groups()
    decimals = decimals or ""
    exponent = int(power or 0)
    digits = (whole + decimals).lstrip("0")
    if not digits:
        return f"{sign}0.0"
    # 0.digits, times ten to the power of this
    point = exponent + len(whole) - (len(whole + decimals) - len(digits))
    digits = digits.rstrip("0")
    if len(digits) == 1 and point - 1 <= (_TINY_8 if size > 4 else _TINY_4):  # noqa: PLR2004
        digits, point = _two_digits(float(text), point, size)
    if _FIXED[0] < point <= _FIXED[1]:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        whole = digits[:point].ljust(point, "0")
        return f"{sign}{whole}.{digits[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _two_digits(value: float, point: int, size: int) -> tuple[str, int]:
    """Return the two digits that are closest to a subnormal number of one digit."""
    if size == 4:  # noqa: PLR2004 - bytes
        value = _FLOAT.unpack(_FLOAT.pack(value))[0]
    mantissa, _, exponent = f"{abs(value):.1e}".partition("e")
    if not value:  # less than any: not a text of PostgreSQL's
        return "0", point
    return mantissa.replace(".", "").rstrip("0") or "0", int(exponent) + 1
