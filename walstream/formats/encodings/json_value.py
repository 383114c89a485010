"""Values of binary encodings as Connect's JsonConverter writes them."""

from binascii import b2a_base64
from math import isfinite
from struct import Struct
from typing import Final

_FLOAT: Final = Struct("<f")
_DECIMALS: Final = 6  # of a float, which all come back
_MOST_DECIMALS: Final = 9
_SMALLEST: Final = 2.0**-126  # with all its bits


def base64(value: bytes) -> str:
    """Write bytes as JSON has them."""
    return b2a_base64(value, newline=False).decode()


def double(number: float) -> float | str:
    """Write a double."""
    return number if isfinite(number) else _word(number)


def single(number: float) -> float | str:
    """Write a float, with the fewest digits that mean it."""
    return _shortest(number) if isfinite(number) else _word(number)


def _word(number: float) -> str:
    if number != number:  # noqa: PLR0124 - NaN alone
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def _shortest(number: float) -> float:
    """Return the number of the fewest digits that is this float."""
    first = _DECIMALS if abs(number) >= _SMALLEST else 1
    wanted = _FLOAT.pack(number)
    for decimals in range(first, _MOST_DECIMALS):
        found = float(f"{number:.{decimals}g}")
        try:
            if _FLOAT.pack(found) == wanted:
                return found
        except OverflowError:  # rounded up from the largest one
            continue
    return float(f"{number:.{_MOST_DECIMALS}g}")
