"""The SQL that applies one op to a table, made once for each set of columns.

Values are parameters in PostgreSQL's text form without a type: the server reads each by
its column's type, as it would a literal. Nothing of a value is ever part of the SQL.
"""

# ruff: noqa: S608 - of quoted identifiers alone

from collections.abc import Iterable, Sequence
from typing import Final

from psycopg import sql

from consumer.mirror.position_store import cast
from consumer.mirror.table_shape import TargetTable
from consumer.pg_catalog import IS, IS_NOT, unnest

Where = tuple[tuple[str, bool], ...]
"""The columns that describe a row, and whether each is NULL."""

# How values print where texts are compared; for the rest of the transaction only.
PRINT_AS_STREAMED: Final = """
SELECT pg_catalog.set_config(name, value, true) FROM (VALUES
  ('DateStyle', 'ISO'), ('TimeZone', 'UTC'), ('IntervalStyle', 'postgres'),
  ('extra_float_digits', '3'), ('bytea_output', 'hex'), ('xmlbinary', 'base64'))
  AS printed (name, value)
"""


def upsert(shape: TargetTable, columns: Sequence[str]) -> str:
    """INSERT of these columns, or UPDATE where the key is there already."""
    table = _table(shape)
    if not columns:
        return f"INSERT INTO {table} DEFAULT VALUES"
    conflict = ""
    if shape.key:
        sets = [
            f"{_name(column)} = EXCLUDED.{_name(column)}"
            for column in columns
            if (column not in shape.key or column in shape.respelt)
            and column not in shape.always
        ]
        action = f"UPDATE SET {', '.join(sets)}" if sets else "NOTHING"
        conflict = f" ON CONFLICT ({_names(shape.key)}) DO {action}"
    values = ", ".join(["%s"] * len(columns))
    return (
        # the alias: a table may be named excluded
        f"INSERT INTO {table} AS t ({_names(columns)}) OVERRIDING SYSTEM VALUE"
        f" VALUES ({values}){conflict}"
    )


def update_by_key(shape: TargetTable, columns: Sequence[str]) -> str:
    """UPDATE of these columns; the key's values stand after theirs."""
    return f"UPDATE {_rows(shape)} SET {_sets(columns)} WHERE {_by_key(shape)}"


def delete_by_key(shape: TargetTable) -> str:
    """DELETE of the row with this key."""
    return f"DELETE FROM {_rows(shape)} WHERE {_by_key(shape)}"


def texts_by_key(shape: TargetTable, columns: Sequence[str]) -> str:
    """SELECT the texts of these columns, NULL for NULL, of the row with this key."""
    texts = (
        # of a composite of NULLs, IS NULL is true
        f"CASE WHEN pg_catalog.num_nulls({_name(one)}) {IS} 0"
        f" THEN pg_catalog.format('%%s', {_name(one)}) END"
        for one in columns
    )
    return f"SELECT {', '.join(texts)} FROM {_rows(shape)} WHERE {_by_key(shape)}"


def has_key(shape: TargetTable) -> str:
    """SELECT whether a row has this key."""
    return f"SELECT FROM {_rows(shape)} WHERE {_by_key(shape)}"


def has_other(shape: TargetTable, columns: Sequence[str]) -> str:
    """SELECT whether the row with this key has another value; values come first."""
    others = " OR ".join(f"{_name(column)} {IS_NOT} %s" for column in columns)
    return f"SELECT FROM {_rows(shape)} WHERE ({others}) AND {_by_key(shape)}"


def same_key(shape: TargetTable) -> str:
    """SELECT whether two keys are one; the values of a column stand side by side."""
    same = (
        f"{cast('%s', kind)} {kind.operator} {cast('%s', kind)}"
        for kind in shape.key_types
    )
    return f"SELECT {' AND '.join(same)}"


def upsert_many(shape: TargetTable, columns: Sequence[str]) -> str:
    """INSERT or UPDATE of many rows with different keys; of an array a column."""
    one = upsert(shape, columns)
    values = f" VALUES ({', '.join(['%s'] * len(columns))})"
    return one.replace(values, f" SELECT * FROM {_unnested(shape, columns)}", 1)


def update_many(shape: TargetTable, columns: Sequence[str]) -> str:
    """UPDATE of these columns; arrays of theirs, then of the key's. Gives numbers."""
    sets = ", ".join(f"{_name(one)} = w.c{n}" for n, one in enumerate(columns))
    wanted = _unnested(shape, (*columns, *shape.key), " WITH ORDINALITY")
    where = _same_key(shape, len(columns))
    return (
        f"UPDATE {_rows(shape)} AS t SET {sets} FROM {wanted} WHERE {where}"
        " RETURNING w.n"
    )


def delete_many(shape: TargetTable, _columns: Sequence[str]) -> str:
    """DELETE of rows with these keys; of an array a column."""
    wanted = _unnested(shape, shape.key)
    return f"DELETE FROM {_rows(shape)} AS t USING {wanted} WHERE {_same_key(shape, 0)}"


def _same_key(shape: TargetTable, first: int) -> str:
    return " AND ".join(
        f"t.{_name(column)} {_equal(shape, column)} w.c{number}"
        for number, column in enumerate(shape.key, first)
    )


def _unnested(shape: TargetTable, columns: Sequence[str], numbered: str = "") -> str:
    # as elements of an array of its type a text is read by the type, as elsewhere
    arrays = unnest(*(f"%s::{shape.arrays[column]}" for column in columns))
    names = [f"c{number}" for number in range(len(columns))] + ["n"] * bool(numbered)
    return f"{arrays}{numbered} AS w ({', '.join(names)})"


def unfix(shape: TargetTable, columns: Sequence[str]) -> str:
    """Return what an operator lets these identity columns be written with."""
    table = sql.Identifier(shape.schema, shape.name).as_string()
    names = (sql.Identifier(column).as_string() for column in columns)
    each = (f"ALTER COLUMN {name} SET GENERATED BY DEFAULT" for name in names)
    return f"ALTER TABLE {table} {', '.join(each)};"


def update_one(shape: TargetTable, columns: Sequence[str], where: Where) -> str:
    """UPDATE one of the rows that look like this; its parameters come first."""
    return (
        f"WITH one AS ({_one(shape, where)}) UPDATE {_rows(shape)} AS t"
        f" SET {_sets(columns)} FROM one"
        f" WHERE t.ctid {IS} one.ctid AND t.tableoid {IS} one.tableoid"
    )


def delete_one(shape: TargetTable, where: Where) -> str:
    """DELETE one of the rows that look like this."""
    return (
        f"WITH one AS ({_one(shape, where)}) DELETE FROM {_rows(shape)} AS t"
        f" USING one WHERE t.ctid {IS} one.ctid AND t.tableoid {IS} one.tableoid"
    )


def key_of_one(shape: TargetTable, where: Where) -> str:
    """SELECT the key's texts of one of the rows that look like this."""
    return _one(
        shape,
        where,
        ", ".join(f"pg_catalog.format('%%s', {_name(n)})" for n in shape.key),
    )


def empty(shape: TargetTable) -> str:
    """Empty this table alone, whatever references or inherits from it."""
    only = "" if shape.partitioned else "ONLY "
    if shape.referenced:  # TRUNCATE refuses, even where no row refers to it
        return f"DELETE FROM {only}{_table(shape)}"
    return f"TRUNCATE {only}{_table(shape)}"


def empty_together(shapes: Sequence[TargetTable]) -> str:
    """Empty tables that may reference each other."""
    names = (f"{'' if one.partitioned else 'ONLY '}{_table(one)}" for one in shapes)
    return f"TRUNCATE {', '.join(names)}"


def _one(shape: TargetTable, where: Where, what: str = "tableoid, ctid") -> str:
    conditions = [_matches(shape, column, null=null) for column, null in where]
    return (
        f"SELECT {what} FROM {_rows(shape)} WHERE {' AND '.join(conditions) or 'true'}"
        " LIMIT 1 FOR UPDATE"
    )


def _matches(shape: TargetTable, column: str, *, null: bool) -> str:
    name = _name(column)
    if null:
        return f"{name} IS NULL"
    # format prints as the stream does; equality alone would take 1.0 for 1.00, and
    # json has none
    exact = f"pg_catalog.format('%%s', {name}) {IS} %s"
    return f"{name} {IS} %s AND {exact}" if column in shape.indexed else exact


def matching(
    shape: TargetTable, row: Iterable[tuple[str, str | None]]
) -> tuple[Where, list[str]]:
    """Return what finds a row that looks like this, and its parameters."""
    where: list[tuple[str, bool]] = []
    parameters: list[str] = []
    for column, text in row:
        where.append((column, text is None))
        if text is not None:
            parameters += [text] * (1 + (column in shape.indexed))
    return tuple(where), parameters


def _by_key(shape: TargetTable) -> str:
    if not shape.key_types:
        return " AND ".join(
            f"{_name(column)} {_equal(shape, column)} %s" for column in shape.key
        )
    return " AND ".join(
        f"{_name(column)} {kind.operator} {cast('%s', kind)}"
        for column, kind in zip(shape.key, shape.key_types, strict=True)
    )


def _equal(shape: TargetTable, column: str) -> str:
    return shape.equal.get(column, IS).replace("%", "%%")


def _sets(columns: Sequence[str]) -> str:
    return ", ".join(f"{_name(column)} = %s" for column in columns)


def _table(shape: TargetTable) -> str:
    return _quoted(sql.Identifier(shape.schema, shape.name))


def _rows(shape: TargetTable) -> str:
    """Return what has its rows: another row of a child may have the same key."""
    return f"{'ONLY ' * shape.alone}{_table(shape)}"


def _names(columns: Iterable[str]) -> str:
    return ", ".join(map(_name, columns))


def _name(column: str) -> str:
    return _quoted(sql.Identifier(column))


def _quoted(identifier: sql.Identifier) -> str:
    # psycopg reads % as the start of a parameter
    return identifier.as_string().replace("%", "%%")
