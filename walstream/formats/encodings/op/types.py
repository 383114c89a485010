"""Types of columns in the format `op`: Debezium's, where they keep what a text says."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import orjson

from walstream.formats.debezium import connect
from walstream.formats.debezium.connect_type import (
    BY_OID,
    DATA,
    KAFKA,
    TIME,
    ConnectType,
)
from walstream.formats.debezium.connect_value import text_of
from walstream.formats.debezium.numeric import precision_of, scale_of
from walstream.formats.debezium.pg_type import PgType
from walstream.formats.debezium.types import ConnectTypes, Lost

Doubt = Callable[[str], bool]
"""True: a text does not come back from its type."""

_TEXT: Final = BY_OID[25]
_NUMERIC: Final = 1700
_LOSSY: Final = frozenset({790, 1186, 1266, 1560, 1562})
"""money, interval, timetz, bit, varbit: Debezium's types are of a moment or a number.

Not of the currency, of months and days, of the zone, of leading zeros.
"""
_LOSSY_NAMES: Final = frozenset({"sparsevec"})
_FIRST_NAMED: Final = 10_000  # oids below are the same everywhere
_USUAL_YEAR: Final = 26  # characters of `2020-02-29 03:04:05.678901`
_DOUBTFUL: Final = (KeyError, TypeError, ValueError)


class OpTypes(ConnectTypes):
    """The choices of this format."""

    def of(self, pg: PgType, lost: Lost) -> ConnectType:
        """Return the type of a column; one that Debezium leaves out is a text."""
        found = None if _is_lossy(pg) else super().of(pg, lost)
        if found is None:
            return _TEXT
        if found.item is not None:
            items = found.item.schema.as_optional()  # of any array
            found = replace(found, schema=connect.array(items))
        return found


def _is_lossy(pg: PgType) -> bool:
    if pg.oid == _NUMERIC:
        if pg.modifier < 0:
            return True  # of trailing zeros a VariableScaleDecimal tells nothing
        return not 0 <= scale_of(pg.modifier) <= precision_of(pg.modifier)
    if pg.oid >= _FIRST_NAMED and pg.name in _LOSSY_NAMES:
        return True
    return pg.oid in _LOSSY


def doubt_of(found: ConnectType) -> Doubt | None:
    """Return what tells which texts do not come back; None: all do."""
    schema = found.schema
    if found.item is not None:
        return _doubt_of_array(found)
    if schema.name == f"{KAFKA}Decimal":
        return _is_no_number
    if schema.name in {f"{TIME}MicroTimestamp", f"{TIME}Timestamp"}:
        return _unless(_is_usual_time, found)
    if schema.name in {f"{DATA}DoubleVector", f"{DATA}FloatVector"}:
        return _unless(_is_plain, found)
    return None


def _is_no_number(text: str) -> bool:
    return not text[-1:].isdigit()


def _is_usual_time(text: str) -> bool:
    return len(text) <= _USUAL_YEAR


def _is_plain(text: str) -> bool:
    return "e" not in text


def _doubt_of_array(found: ConnectType) -> Doubt:
    item = found.item
    simple = item is not None and doubt_of(item) is None

    def is_simple(text: str) -> bool:
        """Return whether it has one dimension, from 1 on, and nothing in quotes."""
        return simple and text[:1] == "{" and "{" not in text[1:] and '"' not in text

    return _unless(is_simple, found)


def _unless(sure: Callable[[str], bool], found: ConnectType) -> Doubt:
    """Return what looks at a text that is not `sure` to come back."""
    schema: dict[str, Any] = orjson.loads(found.schema.json())
    render = found.render

    def doubts(text: str) -> bool:
        if sure(text):
            return False
        try:
            return text_of(orjson.loads(render(text)), schema) != text
        except _DOUBTFUL:
            return True

    return doubts
