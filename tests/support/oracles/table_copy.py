"""A table and what a sink made of it: columns and rows, as texts."""

import psycopg
from psycopg import sql

from tests.support.fixtures.postgres import Database

_DEFINITION = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
  pg_get_expr(d.adbin, d.adrelid), a.attnum = ANY (i.indkey)
FROM pg_attribute a
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
WHERE a.attrelid = %s::regclass AND a.attnum > 0 ORDER BY a.attnum
"""


def rows(database: Database, table: str, *columns: str) -> list[tuple[str, ...]]:
    """Return the rows in order, each value as text; none if there is no such table."""
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        shown = sql.SQL(", ").join(map(sql.Identifier, filter(None, columns)))
        query = sql.SQL("SELECT {} FROM {} AS found ORDER BY found::text").format(
            shown if any(columns) else sql.SQL("found::text"), sql.Identifier(table)
        )
        try:
            return connection.execute(query).fetchall()
        except psycopg.errors.UndefinedTable:
            return []


def definition(database: Database, table: str) -> list[tuple[object, ...]]:
    """Return name, type, NOT NULL, default and key of the columns."""
    return database.fetch(_DEFINITION, f'"{table}"')
