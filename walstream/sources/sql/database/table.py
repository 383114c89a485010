"""Looks at a table before it is polled, and refuses what cannot be.

Each refusal is one line with what to do: no such table or column, no right to read, or
a key that is not fit.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final

from sqlalchemy import (
    ColumnClause,
    Connection,
    Inspector,
    Select,
    column,
    false,
    inspect,
    literal_column,
    select,
    table,
)
from sqlalchemy.engine.interfaces import ReflectedColumn
from sqlalchemy.exc import DBAPIError, NoSuchTableError, SAWarning
from sqlalchemy.types import NullType

from walstream.errors import ConfigError, PermissionLacking, WalstreamError
from walstream.sources.sql.database import search_path
from walstream.sources.sql.database.errors import hides_rows, translate
from walstream.sources.sql.database.grant import bypass, grant
from walstream.sources.sql.database.key import check_key, unescaped
from walstream.sources.sql.database.shape import (
    SqlColumn,
    SqlTableShape,
    TableSpec,
    Type,
)

_NEAR: Final = 3  # names offered in the place of a wrong one
_UNKNOWN: Final = "UNKNOWN"


def look(connection: Connection, wish: TableSpec) -> SqlTableShape:
    """Find the table; refuse what cannot be polled.

    Without `fields` it is what SELECT * gives. A key not among them comes first.
    """
    with connection.begin():
        inspector = inspect(connection)
    schema, name = _find(connection, inspector, wish)
    try:
        with warnings.catch_warnings(), connection.begin():
            warnings.simplefilter("ignore", SAWarning)  # of types that it does not know
            reflected = _reflected(inspector, wish, schema, name)
            wanted = _wanted(connection, wish, (schema, name), reflected)
            place = schema, name
            found = reflected.get(wish.primary_key)
            check_key(connection, inspector, wish, place, found)
    except DBAPIError as error:
        raise _refused(connection, error, wish, (schema, name)) from None
    columns = {one: _column(one, reflected.get(one)) for one in wanted}
    values = tuple(columns.values())
    engine = connection.dialect.name
    key = columns[wish.primary_key]
    return SqlTableShape(wish.name, schema, name, key, values, engine)


def _find(
    connection: Connection, inspector: Inspector, wish: TableSpec
) -> tuple[str, str]:
    """Find which part of the name is the schema: a table's name may have a dot, too."""
    refused: tuple[DBAPIError, tuple[str, str]] | None = None
    for schema, name in _readings(wish.name):
        found = schema or search_path.schema_of(connection, name), name
        try:
            with connection.begin():
                if inspector.has_table(found[1], found[0] or None):
                    return found
        except DBAPIError as error:
            if not isinstance(translate(error), (ConfigError, PermissionLacking)):
                raise
            refused = refused or (error, found)
    if refused is not None:
        raise _refused(connection, refused[0], wish, refused[1])
    raise ConfigError(
        f"there is no table {wish.name}"
        f"{_near(wish.name, _tables(connection, inspector, wish))}",
        hint='write "table" or "schema.table" as the database spells them',
    )


def _readings(name: str) -> Iterator[tuple[str, str]]:
    for place, letter in enumerate(name):
        if letter == "." and name[:place] and name[place + 1 :]:
            yield name[:place], name[place + 1 :]
    yield "", name


def _tables(connection: Connection, inspector: Inspector, wish: TableSpec) -> list[str]:
    """List the names that might have been meant, spelt as they would be configured."""
    own: list[str] | list[None] = search_path.schemas(connection) or [None]
    found = [name for one in own for name in inspector.get_table_names(one)]
    schema, dot, _ = wish.name.partition(".")
    if dot and schema in inspector.get_schema_names():
        found += [f"{schema}.{name}" for name in inspector.get_table_names(schema)]
    return found


def _reflected(
    inspector: Inspector, wish: TableSpec, schema: str, name: str
) -> dict[str, ReflectedColumn]:
    try:
        columns = inspector.get_columns(name, schema or None)
    except NoSuchTableError:
        raise ConfigError(f"table {wish.name} has just disappeared") from None
    return {unescaped(one["name"], inspector): one for one in columns}


def _wanted(
    connection: Connection,
    wish: TableSpec,
    found: tuple[str, str],
    reflected: Iterable[str],
) -> list[str]:
    """Name the columns to select; the database says whether we may."""
    schema, name = found
    if not wish.fields:
        everything = table(name, schema=schema or None)
        statement: Select[Any] = (
            select(literal_column("*")).select_from(everything).where(false())
        )
        # it knows hidden columns, and those whose type SQLAlchemy cannot read
        # SQLAlchemy keeps the columns of a statement that it has compiled once
        afresh = connection.execute(statement, execution_options={"compiled_cache": {}})
        names = list(afresh.keys())
        _must_exist([wish.primary_key], list({*names, *reflected}), wish)
        return names if wish.primary_key in names else [wish.primary_key, *names]
    names = list(wish.fields)
    if wish.primary_key not in names:
        names.insert(0, wish.primary_key)
    _must_exist(names, list(reflected), wish)
    columns: list[ColumnClause[Any]] = [column(one) for one in names]
    asked = table(name, *columns, schema=schema or None)
    connection.execute(select(asked).where(false()))
    return names


def _must_exist(names: Sequence[str], there: Sequence[str], wish: TableSpec) -> None:
    for name in names:
        if name not in there:
            raise ConfigError(
                f"table {wish.name} has no column {name}{_near(name, there)}",
                hint="correct primary_key or fields in the configuration",
            )
    if len(set(names)) < len(names):
        raise ConfigError(f"table {wish.name}: a field is listed twice")


def _column(name: str, reflected: ReflectedColumn | None) -> SqlColumn:
    kind: Type = reflected["type"] if reflected is not None else NullType()
    unknown = isinstance(kind, NullType)
    nullable = reflected is None or reflected["nullable"]
    shown = _UNKNOWN if unknown else type(kind).__name__
    return SqlColumn(name, shown, kind, nullable)


def _near(name: str, there: Sequence[str]) -> str:
    """Offer what may have been meant."""
    same = [one for one in there if one.lower() == name.lower()]
    near = same or get_close_matches(name, there, _NEAR)
    return f": did you mean {' or '.join(near)}?" if near else ""


def _refused(
    connection: Connection, error: DBAPIError, wish: TableSpec, found: tuple[str, str]
) -> WalstreamError:
    refusal = translate(error, f"table {wish.name}")
    if not isinstance(refusal, PermissionLacking):
        return refusal
    cure = bypass if hides_rows(error) else grant
    repair = cure(connection, *found)
    return PermissionLacking(str(refusal.args[0]), hint=refusal.hint, repair=repair)
