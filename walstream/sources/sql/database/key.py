"""Fitness of a key for polling: integers, never null, unique."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from operator import lt
from typing import Any, Final

from sqlalchemy import Connection, Inspector, text, types
from sqlalchemy.engine.interfaces import ReflectedColumn, ReflectedIndex

from walstream.errors import ConfigError
from walstream.sources.sql.database.shape import SqlTableShape, TableSpec, Type

_WHERE: Final = "_where"  # how dialects call the condition of a partial index
# its type, if it alone is the primary key
_KEY_IN_SQLITE: Final = text(
    "SELECT CASE count(*) WHEN 1 THEN max(upper(type)) END"
    " FROM pragma_table_info(:name, :schema) WHERE pk > 0"
    " HAVING max(name) = :key"
)
# by tables whose keys are not of the same sequence; TimescaleDB sees to its chunks
_INHERITED: Final = text("""
SELECT EXISTS (
  SELECT FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent
  JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_class child ON child.oid = i.inhrelid
  JOIN pg_namespace space ON space.oid = child.relnamespace
  WHERE c.relname = :name AND n.nspname = :schema AND c.relkind <> 'p'
    AND space.nspname <> '_timescaledb_internal'
    AND (SELECT count(DISTINCT pg_get_expr(d.adbin, d.adrelid)) = 1 AND count(*) = 2
           AND position('nextval(' IN min(pg_get_expr(d.adbin, d.adrelid))) = 1
         FROM pg_attribute a JOIN pg_attrdef d ON d.adrelid = a.attrelid
           AND d.adnum = a.attnum
         WHERE a.attname = :key AND a.attrelid IN (c.oid, child.oid)) IS NOT TRUE
)
""")


def check_key(
    connection: Connection,
    inspector: Inspector,
    wish: TableSpec,
    found: tuple[str, str],
    reflected: ReflectedColumn | None,
) -> None:
    """Raise ConfigError unless rows can be told and ordered by it."""
    where = f"table {wish.name}: the key {wish.primary_key}"
    if reflected is None or not is_whole(reflected["type"]):
        kind = "unknown" if reflected is None else _name(reflected["type"])
        raise ConfigError(
            f"{where} is not an integer (its type is {kind})",
            hint="name an increasing integer column as primary_key",
        )
    if not _is_unique(inspector, wish.primary_key, found):
        raise _not_unique(inspector, where, found)
    if _is_inherited(connection, wish.primary_key, found):
        raise ConfigError(
            f"{where} is not unique: tables inherit from this one, whose keys its "
            "index does not cover",
            hint="poll each of these tables, partition it (PARTITION BY), or have all "
            "draw their keys from one sequence",
        )
    if reflected["nullable"] and not _is_rowid(connection, wish.primary_key, found):
        raise ConfigError(
            f"{where} may be null",
            hint="declare it NOT NULL, or name another column as primary_key",
        )


def is_whole(kind: Type) -> bool:
    """Whether the type holds whole numbers alone."""
    kind = getattr(kind, "data_type", kind)  # of a domain
    if isinstance(kind, types.Numeric) and not isinstance(kind, types.Float):
        return kind.scale == 0 and kind.precision is not None
    return isinstance(kind, types.Integer)


def _is_unique(inspector: Inspector, key: str, found: tuple[str, str]) -> bool:
    """Whether it alone is the columns of a constraint or an index."""
    schema, name = found[0] or None, found[1]
    indexes = [one for one in inspector.get_indexes(name, schema) if _is_whole(one)]
    primary = inspector.get_pk_constraint(name, schema)["constrained_columns"]
    unique: list[Sequence[str | None]] = [primary]
    unique += [one["column_names"] for one in indexes]
    with suppress(NotImplementedError):  # dialects that have no such thing
        constraints = inspector.get_unique_constraints(name, schema)
        unique += [one["column_names"] for one in constraints]
    return [key] in [
        [unescaped(one, inspector) for one in columns] for columns in unique
    ]


def unescaped(name: str | None, inspector: Inspector) -> str:
    """Spell a reflected column's name: SQLAlchemy leaves MySQL's quotes doubled."""
    name = name or ""  # an expression
    if inspector.dialect.name in {"mysql", "mariadb"}:
        return name.replace("``", "`")
    return name


def _is_whole(index: ReflectedIndex) -> bool:
    options = index.get("dialect_options", {})
    partial = any(
        name.endswith(_WHERE) and value is not None for name, value in options.items()
    )
    return bool(index["unique"]) and not partial


def _not_unique(
    inspector: Inspector, where: str, found: tuple[str, str]
) -> ConfigError:
    if found[1] in inspector.get_view_names(found[0] or None):
        return ConfigError(
            f"{where} belongs to a view: nothing shows that it is unique",
            hint="poll the table below the view",
        )
    return ConfigError(
        f"{where} is not unique: it has no PRIMARY KEY or UNIQUE index of its own",
        hint="create one, or name another column as primary_key",
    )


def _is_inherited(connection: Connection, key: str, found: tuple[str, str]) -> bool:
    """Whether it is PostgreSQL's, and has children whose keys may be its own, too."""
    if connection.dialect.name != "postgresql":
        return False
    asked = {"schema": found[0], "name": found[1], "key": key}
    return bool(connection.execute(_INHERITED, asked).scalar())


def _is_rowid(connection: Connection, key: str, found: tuple[str, str]) -> bool:
    """Whether it is SQLite's INTEGER PRIMARY KEY, which is never null."""
    if connection.dialect.name != "sqlite":
        return False
    asked = {"schema": found[0] or "main", "name": found[1], "key": key}
    kind = connection.execute(_KEY_IN_SQLITE, asked).scalar()
    return kind == "INTEGER"


def _name(kind: Type) -> str:
    return "unknown" if isinstance(kind, types.NullType) else type(kind).__name__


_INT: Final = {int}


def whole(value: Any, shape: SqlTableShape) -> int | None:
    """Return the key as an int; None stays None."""
    return None if value is None else wholes([value], shape)[0]


def wholes(values: Sequence[Any], shape: SqlTableShape) -> list[int]:
    """Return keys as ints; ConfigError where one is null, a fraction or a text."""
    if set(map(type, values)) <= _INT:
        return list(values)
    return [_whole(value, shape) for value in values]


def ascending(
    values: Iterable[Any], after: int | None, shape: SqlTableShape
) -> list[int]:
    """Likewise; ConfigError unless each is greater than the one before it."""
    keys = wholes(list(values), shape)
    if after is not None and keys and keys[0] <= after:
        raise _key_not_unique(shape)
    if not all(map(lt, keys, islice(keys, 1, None))):
        raise _key_not_unique(shape)
    return keys


def _whole(value: Any, shape: SqlTableShape) -> int:
    if type(value) is int:
        return value
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
        return int(value)  # of engines whose only numbers are decimal
    raise ConfigError(
        f"table {shape.name}: the key {shape.key.name} has values that are not "
        "integers",
        hint="delete or correct such rows, or name another column as primary_key",
    )


def _key_not_unique(shape: SqlTableShape) -> ConfigError:
    return ConfigError(
        f"table {shape.name}: the key {shape.key.name} is not unique",
        hint="delete or correct such rows, or name another column as primary_key",
    )
