"""numeric and money: exact digits, as Connect's Decimal, as texts or as doubles."""

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, DecimalException
from typing import Final

from walstream.formats.debezium.float_text import python_float

Render = Callable[[str], str]
Lost = Callable[[str], None]
"""Called with the reason, where a value has no form: it is counted, and named once."""

NO_NUMBER: Final = "no finite number"
SPECIAL: Final = {
    "NaN": "NAN",
    "Infinity": "POSITIVE_INFINITY",
    "-Infinity": "NEGATIVE_INFINITY",
}
_LONGEST: Final = 4000  # digits that Python's int reads from a text
_HEADER: Final = 4  # of a varlena: a modifier counts it
_SCALE_BITS: Final = 11
_SMALL: Final = 1 << 47
_DIGITS: Final = (
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"  # of base64
)
_PAIRS: Final = [first + second for first in _DIGITS for second in _DIGITS]
_FIRSTS: Final = list(_DIGITS[::4])  # of four bits and two that fill it


def precision_of(modifier: int) -> int:
    """Return p of numeric(p,s)."""
    return (modifier - _HEADER) >> 16 & 0xFFFF


def scale_of(modifier: int) -> int:
    """Return s of numeric(p,s): from -1000 on."""
    sign = 1 << _SCALE_BITS - 1
    return (((modifier - _HEADER) & (1 << _SCALE_BITS) - 1) ^ sign) - sign


def base64(number: int) -> str:
    """Write the bytes of Java's BigInteger: the fewest of two's complement."""
    if 0 <= number < _SMALL:  # most values
        return _small(number)
    bits = (number if number >= 0 else ~number).bit_length()
    raw = number.to_bytes((bits >> 3) + 1, "big", signed=True)
    return b2a_base64(raw, newline=False).decode()


def _small(number: int) -> str:
    """Write one of at most six bytes, twelve bits at a time."""
    if number < 1 << 23:
        if number < 1 << 7:
            return _PAIRS[number << 4] + "=="
        if number < 1 << 15:
            return _PAIRS[number >> 4] + _FIRSTS[number & 15] + "="
        return _PAIRS[number >> 12] + _PAIRS[number & 4095]
    if number < 1 << 31:
        rest = _PAIRS[(number & 255) << 4] + "=="
        return _PAIRS[number >> 20] + _PAIRS[number >> 8 & 4095] + rest
    if number < 1 << 39:
        rest = _PAIRS[number >> 4 & 4095] + _FIRSTS[number & 15] + "="
        return _PAIRS[number >> 28] + _PAIRS[number >> 16 & 4095] + rest
    rest = _PAIRS[number >> 12 & 4095] + _PAIRS[number & 4095]
    return _PAIRS[number >> 36] + _PAIRS[number >> 24 & 4095] + rest


def decimal_text(number: int, scale: int) -> str:
    """Write a number of so many decimals, in digits."""
    if scale <= 0:
        return f"{digits_of(number)}{'0' * -scale if number else ''}"
    digits = digits_of(abs(number)).rjust(scale + 1, "0")
    return f"{'-' if number < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def digits_of(number: int) -> str:
    """Write an integer of any size: Python's own conversion has a limit."""
    if number.bit_length() < _LONGEST:
        return f"{number}"
    return f"{Decimal(number):f}"


def fixed(scale: int, lost: Lost) -> Render:
    """Return what writes a Decimal of this scale."""

    def render(text: str) -> str:
        whole, _, decimals = text.partition(".")
        digits = whole + decimals
        if len(decimals) == scale and digits.isdecimal() and len(digits) < _LONGEST:
            return f'"{base64(int(digits))}"'  # most values: without the steps below
        unscaled = _integer(_scaled(digits, scale - len(decimals)))
        return _special(text, lost) if unscaled is None else f'"{base64(unscaled)}"'

    return render


def unscaled(scale: int, lost: Lost) -> Callable[[str], bytes | None]:
    """Return what reads the bytes that `fixed` writes."""
    render = fixed(scale, lost)

    def read(text: str) -> bytes | None:
        whole, _, decimals = text.partition(".")
        digits = whole + decimals
        if len(decimals) == scale and digits.isdecimal() and len(digits) < _LONGEST:
            number = int(digits)
            return number.to_bytes((number.bit_length() >> 3) + 1, "big")
        written = render(text)
        return None if written == "null" else a2b_base64(written[1:-1])

    return read


def _scaled(digits: str, missing: int) -> str:
    """Return digits with so many more decimals, or without zeros that are too many."""
    if not digits.removeprefix("-").isdecimal():
        return ""
    if missing >= 0:
        return digits + "0" * missing
    if digits[missing:].strip("0"):
        return ""
    return digits[:missing] or "0"


def variable(lost: Lost) -> Render:
    """Return what writes a VariableScaleDecimal: the scale is the value's own."""

    def render(text: str) -> str:
        whole, _, decimals = text.partition(".")
        if decimals.endswith("0"):
            decimals = decimals.rstrip("0")
        digits = whole + decimals
        if len(digits) < _LONGEST and digits.isdecimal():  # most values
            return f'{{"scale":{len(decimals)},"value":"{base64(int(digits))}"}}'
        number = _integer(digits)
        if number is None:
            return _special(text, lost)
        return f'{{"scale":{len(decimals)},"value":"{base64(number)}"}}'

    return render


def plain_text(text: str) -> str:
    """Return every digit; a special value has its name in Java."""
    if text.replace(".", "", 1).isdecimal():  # most values
        return text
    return SPECIAL[text] if text in SPECIAL else _checked(text)


def as_text(text: str) -> str:
    """Write every digit as a text."""
    return f'"{plain_text(text)}"'


def as_double(text: str) -> str:
    """Write the double that is closest."""
    return python_float(float(_checked(text)))


def money(digits: int, write: Render) -> Render:
    """Return what reads `$1,234.56` and writes the number, rounded half up."""
    unit = Decimal(1).scaleb(-digits)

    def render(text: str) -> str:
        number = Decimal(amount(text))
        try:
            rounded = number.quantize(unit, ROUND_HALF_UP)
        except DecimalException:  # more digits than money has
            raise ValueError("not a number") from None
        return write(str(rounded))

    return render


def money_text(text: str) -> str:
    """Write the digits of money as a text."""
    return f'"{amount(text)}"'


def money_double(text: str) -> str:
    """Write the double that is closest to money."""
    return as_double(amount(text))


def amount(text: str) -> str:
    """Return the digits of money, with its sign and its decimals."""
    sign = "-" if text[:1] in {"-", "("} else ""
    kept = "".join(one for one in text if one.isdecimal() or one == ".")
    return _checked(sign + kept)


def _checked(text: str) -> str:
    if (
        text not in SPECIAL
        and not text.removeprefix("-").replace(".", "", 1).isdecimal()
    ):
        raise ValueError("not a number")
    return text


def _integer(digits: str) -> int | None:
    """Read an integer of any length; None: it is none."""
    if not digits.removeprefix("-").isdecimal():
        return None
    return int(digits) if len(digits) < _LONGEST else int(Decimal(digits))


def _special(text: str, lost: Lost) -> str:
    if text not in SPECIAL:
        raise ValueError("not a number")
    lost(NO_NUMBER)
    return "null"
