"""Values of JsonSchemaConverter's JSON -> those of JsonConverter's, where they differ.

Maps of other keys than texts are lists of objects there, and lists of pairs here; a
decimal may be a number there, and is base64 here. What has another shape than its
schema says stays as it is.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from walstream.formats.debezium.numeric import base64

Convert = Callable[[Any], Any]
_ENTRY: Final = {"key", "value"}
_MOST: Final = 131072  # digits of a numeric before its point, and more than behind it


def optional(convert: Convert) -> Convert:
    """Return what leaves a null as it is."""
    return lambda value: None if value is None else convert(value)


def struct(fields: Mapping[str, Convert]) -> Convert:
    """Return what converts these fields of an object."""

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            name: convert(one) if (convert := fields.get(name)) is not None else one
            for name, one in value.items()
        }

    return read


def array(item: Convert) -> Convert:
    """Return what converts each item."""
    return lambda value: [*map(item, value)] if isinstance(value, list) else value


def mapping(value: Convert) -> Convert:
    """Return what converts each value of an object."""

    def read(found: Any) -> Any:
        if not isinstance(found, dict):
            return found
        return {key: value(one) for key, one in found.items()}

    return read


def pairs(key: Convert | None, value: Convert | None, *, named: bool) -> Convert:
    """Return what reads a list of objects of `key` and `value`.

    With keys that are texts, those name the members of one object.
    """
    of_key, of_value = key or _same, value or _same

    def read(found: Any) -> Any:
        if not (isinstance(found, list) and all(map(_is_entry, found))):
            return found
        made = [(of_key(one["key"]), of_value(one["value"])) for one in found]
        return dict(made) if named else [[*pair] for pair in made]

    return read


def decimal(scale: int) -> Convert:
    """Return what reads a number as the bytes of a Decimal, in base64."""

    def read(value: Any) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            return value
        number = Decimal(value)
        if not number.is_finite() or abs(number.adjusted()) > _MOST:
            return value
        sign, digits, exponent = number.as_tuple()
        missing = int(exponent) + scale
        if missing < 0 and any(digits[missing:]):
            return value
        # arithmetic of Decimal would round to 28 digits
        whole = digits[:missing] if missing < 0 else digits + (0,) * missing
        return base64(int(Decimal((sign, whole or (0,), 0))))

    return read


def floats(value: Any) -> Any:
    """Return a document with numbers as JSON's readers have them: those of 64 bits."""
    if isinstance(value, list):
        return [*map(floats, value)]
    if isinstance(value, dict):
        return {name: floats(one) for name, one in value.items()}
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, int) and (value >> 64 if value >= 0 else ~value >> 63):
        return float(Decimal(value))
    return value


def _is_entry(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == _ENTRY


def _same(value: Any) -> Any:
    return value
