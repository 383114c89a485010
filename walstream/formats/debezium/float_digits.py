"""The digits with which PostgreSQL writes a floating-point number.

The fewest that name it, as of Python's `repr`; but none that lie half-way to the next
number, which are read as this one by a rule for ties alone.
"""

from decimal import Decimal
from math import frexp
from struct import Struct
from typing import Final

_FLOAT: Final = Struct("<f")
_BITS: Final = {4: 24, 8: 53}
_MOST: Final = 17  # digits


def float_digits(value: float, size: int = 8) -> Decimal:
    """Return the number with these digits; `size` is that of its type, in bytes."""
    found = Decimal(repr(value)).normalize()
    if size == 4:  # noqa: PLR2004 - bytes
        try:
            value = _FLOAT.unpack(_FLOAT.pack(value))[0]
        except OverflowError:
            return found
    bits = _BITS[size]
    mantissa, exponent = frexp(abs(value))
    if exponent <= bits:  # half-way there are more digits than any number needs
        return found
    between = 1 << (exponent - bits)  # this number and the next one
    exact = int(abs(value))
    # the one before a power of 2 is at half that distance
    below = between if mantissa == 0.5 else 2 * between  # noqa: PLR2004 - a power of 2
    for digits in range(len(found.as_tuple().digits), _MOST + 1):
        distance = int(abs(found)) - exact
        if -below < 4 * distance < 2 * between:
            break
        found = Decimal(f"{value:.{digits}e}").normalize()
    return found
