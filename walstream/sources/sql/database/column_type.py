"""Types of a database's columns -> types of records with a schema: pure.

By what drivers hand out, as `values` has it: a type that no record has is a text of
its JSON. What a value has beyond its type stands beside the row, so none is lost.
"""

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import types
from sqlalchemy.dialects import postgresql

from walstream.formats.encodings.row.column import RowColumn, RowColumnType
from walstream.sources.sql.database.shape import SqlTableShape, Type

_INT16: Final = RowColumnType("int16")
_INT32: Final = RowColumnType("int32")
_INT64: Final = RowColumnType("int64")
_STRING: Final = RowColumnType("string")
_BY_NAME: Final[Mapping[str, Mapping[str, RowColumnType]]] = {
    "mysql": {"BIT": _INT64, "YEAR": _INT32},
    "postgresql": {
        "HSTORE": RowColumnType("json"),
        "OID": _INT64,
        "UUID": RowColumnType("uuid"),
    },
    "mssql": {
        "DATETIMEOFFSET": RowColumnType("zoned"),
        "MONEY": RowColumnType("decimal", 19, 4),
        "SMALLMONEY": RowColumnType("decimal", 10, 4),
        "TINYINT": _INT16,  # 0 to 255
        "UNIQUEIDENTIFIER": RowColumnType("uuid"),
    },
}
"""Types that SQLAlchemy has no common class for."""
_SAME: Final = {"mariadb": "mysql"}
_SIZES: Final[Mapping[str, tuple[RowColumnType, RowColumnType]]] = {
    "TINYINT": (_INT16, _INT16),
    "SMALLINT": (_INT16, _INT32),
    "MEDIUMINT": (_INT32, _INT32),
    "INTEGER": (_INT32, _INT64),
    "INT": (_INT32, _INT64),
}
"""Of integers with a sign, and without: where a name means a size."""
_SIZED: Final = frozenset({"mssql", "mysql", "postgresql"})
_COMMON: Final[tuple[tuple[type[Type], RowColumnType], ...]] = (
    (types.Boolean, RowColumnType("boolean")),
    (types.Float, RowColumnType("double")),
    (types.DateTime, RowColumnType("timestamp")),
    (types.Date, RowColumnType("date")),
    (types.Time, RowColumnType("time")),
    (types.JSON, RowColumnType("json")),
    (types.Uuid, RowColumnType("uuid")),
    (types.LargeBinary, RowColumnType("bytes")),
    (types._Binary, RowColumnType("bytes")),  # noqa: SLF001 - VARBINARY is one of these
)


def row_columns(shape: SqlTableShape) -> tuple[RowColumn, ...]:
    """Return a table's columns, as records have them."""
    return tuple(
        RowColumn(
            one.name,
            row_type(one.type, shape.dialect),
            required=not one.nullable or one.name == shape.key.name,
        )
        for one in shape.columns
    )


def row_type(kind: Type, dialect: str) -> RowColumnType:
    """Return the type of a column's values in records."""
    kind = getattr(kind, "data_type", kind)  # of a domain
    dialect = _SAME.get(dialect, dialect)
    found = _BY_NAME.get(dialect, {}).get(type(kind).__name__)
    if found is None and isinstance(kind, postgresql.ARRAY):
        found = _array(kind, dialect)
    elif found is None and isinstance(kind, types.Integer):
        found = _integer(kind, dialect)
    return found or _decimal(kind) or _common(kind)


def _array(kind: "postgresql.ARRAY[Any]", dialect: str) -> RowColumnType:
    if (kind.dimensions or 1) > 1:
        return RowColumnType("json")
    return RowColumnType("array", items=row_type(kind.item_type, dialect))


def _integer(kind: types.Integer, dialect: str) -> RowColumnType:
    """Return how many bits a column's numbers have at most, where that is known."""
    if dialect not in _SIZED:
        return _INT64  # SQLite's have 64, whatever they are declared as
    sizes = _SIZES.get(type(kind).__name__, (_INT64, _INT64))
    return sizes[1] if getattr(kind, "unsigned", False) else sizes[0]


def _decimal(kind: Type) -> RowColumnType | None:
    """Return a decimal, where all its values have the same scale."""
    if not isinstance(kind, types.Numeric) or isinstance(kind, types.Float):
        return None
    precision, scale = kind.precision, kind.scale or 0
    if precision is None or not 0 <= scale <= precision:
        return _STRING
    return RowColumnType("decimal", precision, scale)


def _common(kind: Type) -> RowColumnType:
    if getattr(kind, "timezone", False):
        is_moment = isinstance(kind, types.DateTime)
        return RowColumnType("zoned") if is_moment else _STRING
    found = (common for base, common in _COMMON if isinstance(kind, base))
    return next(found, _STRING)
