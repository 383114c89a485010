"""Numbers of a record that a float may not hold: a numeric that is written as a number.

Connect's JsonConverter does so with `decimal.format` NUMERIC. Integers beyond 64 bits
are rounded likewise.
"""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal, DecimalException
from typing import Any, Final

_FLOATS: Final = frozenset({"float", "double"})
_NO_SCHEMA: Final[Mapping[str, Any]] = {}
_LONGEST: Final = 131072  # digits of a numeric before its point
_INTEGER_DIGITS: Final = 4300  # that Python reads as an int


def may_be_rounded(
    envelope: Mapping[str, Any], schemas: Mapping[str, Mapping[str, Any]] | None
) -> bool:
    """Return whether a row has a number that may have had more digits."""
    known = schemas or {}
    return any(
        _is_float(value, known.get(name, _NO_SCHEMA))
        for row in _rows(envelope)
        for name, value in row.items()
    )


def exact(record: bytes) -> Any:
    """Read a record's JSON, in which a number with a fraction is a Decimal.

    Raises ValueError, or RecursionError.
    """
    return json.loads(record, parse_float=_fraction, parse_int=_integer)


def _rows(envelope: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name in ("before", "after"):
        row = envelope[name]
        if row is not None:
            yield row


def _is_float(value: object, schema: Mapping[str, Any]) -> bool:
    if isinstance(value, list):
        items = schema.get("items", _NO_SCHEMA)
        return any(_is_float(one, items) for one in value)
    return isinstance(value, float) and schema.get("type") not in _FLOATS


def _fraction(digits: str) -> Decimal:
    try:
        number = Decimal(digits)
    except DecimalException:
        number = Decimal("NaN")
    if not number.is_finite() or abs(number.adjusted()) > _LONGEST:
        raise ValueError("no numeric is as long")
    return number


def _integer(digits: str) -> int | Decimal:
    return int(digits) if len(digits) < _INTEGER_DIGITS else Decimal(digits)
