"""Values of a driver, converted to the Python type of the column.

Never raises: what a type does not cover (a zero date of MySQL, anything at all in
SQLite) stays as the driver gave it. What is right already costs nothing.

    SQLite: dates and times from ISO text, booleans from 0 and 1, NUMERIC as Decimal
      with no fewer digits than are declared and none lost, JSON parsed
    MySQL, MariaDB: BIT as int, JSON of MySQL parsed (MariaDB's is a text), SET and ENUM
      as text, TIME as timedelta (it goes beyond a day), FLOAT and DOUBLE as float
      (FLOAT with as many digits as tell it), BOOLEAN as the TINYINT that it is; zero
      dates as text
    PostgreSQL: JSON parsed; see psycopg_text for what stays PostgreSQL's text
    others: what SQLAlchemy makes of the type, except of numbers and texts
"""

import json
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import types
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.mysql import BIT, FLOAT, SET
from sqlalchemy.engine import Dialect

from walstream.sources.sql.database.shape import SqlTableShape, Type

Converter = Callable[[Any], Any]  # of a value that is not None; never raises
Row = tuple[Any, ...]

_SINGLE: Final = struct.Struct("f")
_SINGLE_DIGITS: Final = range(6, 10)
_TOO_FINE: Final = re.compile(r"\.\d{7}")  # Python would cut what is below 1 µs
_DATES: Final = (types.Date, types.DateTime)
_LOSING_DATES: Final = frozenset({"mysqldb", "mysqlconnector", "mariadbconnector"})
_NUMBERS_AND_TEXTS: Final = (types.Numeric, types.Integer, types.String, types.Enum)


class ValueConverters:
    """The converters of a shape's columns."""

    def __init__(self, shape: SqlTableShape, dialect: Dialect) -> None:
        found = (converter(one.type, dialect) for one in shape.columns)
        self.needed = {place: one for place, one in enumerate(found) if one is not None}

    def convert(self, rows: list[Row]) -> list[Row]:
        """Make the values of raw rows; the very list where nothing is needed."""
        if not self.needed or not rows:
            return rows
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
        for place, made in self.needed.items():
            columns[place] = [
                None if value is None else made(value) for value in columns[place]
            ]
        return list(zip(*columns, strict=True))


def converter(kind: Type, dialect: Dialect) -> Converter | None:
    """Return what makes the type's values; None where the driver's are right."""
    match dialect.name:
        case "sqlite":
            return _of_sqlite(kind)
        case "mysql" | "mariadb":
            return _of_mysql(kind, dialect)
        case "postgresql":
            return _of_postgres(kind, dialect)
        case _:
            return _of_any(kind, dialect)


def _of_sqlite(kind: Type) -> Converter | None:
    if isinstance(kind, types.Numeric) and not isinstance(kind, types.Float):
        return _Decimals(kind.scale or 0)
    for base, made in _SQLITE.items():
        if isinstance(kind, base):
            return made
    return None


def comes_as_text(kind: Type, dialect: Dialect) -> bool:
    """Whether the server has to write the value: the driver loses some.

    Drivers of MySQL but one hand out None for a date that Python's type cannot hold.
    """
    return dialect.driver in _LOSING_DATES and isinstance(kind, _DATES)


def comes_rounded(kind: Type, dialect: Dialect) -> bool:
    """Whether the server rounds the value where it sends the column itself.

    It writes six digits of a FLOAT.
    """
    return dialect.name in {"mysql", "mariadb"} and isinstance(kind, FLOAT)


def _of_mysql(kind: Type, dialect: Dialect) -> Converter | None:
    if comes_as_text(kind, dialect):
        is_date = isinstance(kind, types.Date)
        return _iso(date.fromisoformat if is_date else datetime.fromisoformat)
    if comes_rounded(kind, dialect):
        return _single
    if isinstance(kind, BIT):
        return _bits
    if isinstance(kind, SET) and dialect.driver == "mysqlconnector":
        return _Joined(list(kind.values))
    return _parsed if isinstance(kind, types.JSON) else None


def _of_postgres(kind: Type, dialect: Dialect) -> Converter | None:
    kind = getattr(kind, "data_type", kind)  # of a domain
    if isinstance(kind, types.JSON):
        return _parsed
    if isinstance(kind, postgresql.ARRAY):
        if isinstance(kind.item_type, types.Enum):
            return _of_sqlalchemy(kind, dialect)
        inner = _of_postgres(kind.item_type, dialect)
        return inner and _each(inner)
    if isinstance(kind, types.LargeBinary) and dialect.driver == "psycopg2":
        return bytes  # of a memoryview
    return None


def _of_any(kind: Type, dialect: Dialect) -> Converter | None:
    if isinstance(kind, _NUMBERS_AND_TEXTS):
        return None
    return _of_sqlalchemy(kind, dialect)


def _of_sqlalchemy(kind: Type, dialect: Dialect) -> Converter | None:
    try:
        made = kind.dialect_impl(dialect).result_processor(dialect, None)
    except Exception:  # noqa: BLE001 - a dialect that wants to know more
        return None
    return made and _guarded(made)


def _guarded(made: Converter) -> Converter:
    def guarded(value: Any) -> Any:
        try:
            return made(value)
        except Exception:  # noqa: BLE001 - the value stays as it is
            return value

    return guarded


def _each(inner: Converter) -> Converter:
    """Convert the elements of an array, of any dimensions."""

    def each(value: Any) -> Any:
        if isinstance(value, list):
            return [None if one is None else each(one) for one in value]
        return inner(value)

    return each


def _parsed(value: Any) -> Any:
    if not isinstance(value, (str, bytes)):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):  # also of more digits than Python reads
        return value


def _bits(value: Any) -> Any:
    return int.from_bytes(value) if isinstance(value, bytes) else value


def _single(value: Any) -> Any:
    """Make of a FLOAT, widened, the number with the fewest digits that tell it."""
    try:
        wanted = _SINGLE.pack(value)
        for digits in _SINGLE_DIGITS:
            found = float(f"{value:.{digits}g}")
            if _SINGLE.pack(found) == wanted:
                return found
    except (struct.error, ValueError, OverflowError):
        pass
    return value


class _Joined:
    """One driver makes a set of MySQL's SET."""

    def __init__(self, order: list[str]) -> None:
        self._order = order

    def __call__(self, value: Any) -> Any:
        if not isinstance(value, set):
            return value
        known = [one for one in self._order if one in value]
        return ",".join([*known, *sorted(value.difference(known))])


def _truth(value: Any) -> Any:
    return bool(value) if value in (0, 1) and type(value) is int else value


def _iso(read: Callable[[str], Any]) -> Converter:
    def iso(value: Any) -> Any:
        if not isinstance(value, str) or _TOO_FINE.search(value):
            return value
        try:
            return read(value)
        except ValueError:
            return value

    return iso


class _Decimals:
    """SQLite keeps a NUMERIC as integer or floating point number."""

    def __init__(self, scale: int) -> None:
        self._scale = scale
        self._unit = Decimal(1).scaleb(-scale)

    def __call__(self, value: Any) -> Any:
        if type(value) not in (int, float):
            return value  # text, or a blob
        exact = Decimal(repr(value))
        exponent = exact.as_tuple().exponent
        if not isinstance(exponent, int):  # infinity
            return value
        if exponent > 0 or -exponent < self._scale:
            return Decimal(f"{exact:.{self._scale}f}")
        return exact


_SQLITE: Final[Mapping[type[Type], Converter]] = {
    types.JSON: _parsed,
    types.Boolean: _truth,
    types.DateTime: _iso(datetime.fromisoformat),
    types.Date: _iso(date.fromisoformat),
    types.Time: _iso(time.fromisoformat),
}
