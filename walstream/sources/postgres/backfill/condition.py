"""Condition of a part of a table, as the server judges it before anything is read."""

from typing import Final

import psycopg
from psycopg import sql

from walstream.config.condition import condition
from walstream.errors import ConfigError
from walstream.postgres.connection import without_values
from walstream.sources.postgres.backfill.publication_filter import Connection

# of the connection or the moment: connections, rollbacks, resources, locks, an operator
_PASSING: Final = ("08", "40", "53", "55", "57")


def check_text(where: str) -> str:
    """Return the condition; raise ConfigError unless it may be one expression."""
    try:
        return condition(where) if where else ""
    except ValueError as error:
        raise ConfigError(f"the condition {error}") from None


def check(connection: Connection, schema: str, name: str, where: str) -> None:
    """Raise ConfigError, in the server's words, unless a condition fits a table.

    No row is read, and none written.
    """
    query = sql.SQL("SELECT FROM {} AS part WHERE ({}) LIMIT 0").format(
        sql.Identifier(schema, name), sql.SQL(check_text(where))
    )
    try:
        with connection.transaction(force_rollback=True):
            connection.execute("SET TRANSACTION READ ONLY")
            connection.execute(query.as_bytes(connection))
    except psycopg.Error as error:
        if error.sqlstate is None or error.sqlstate.startswith(_PASSING):
            raise
        raise ConfigError(
            f"the condition does not fit table {f'{schema}.{name}'!r}: "
            f"{without_values(error)}",
            hint="write one expression that is true for the rows to send, with "
            "columns by their bare names; functions and operators of extensions need "
            "their schemas: ext.f(…), OPERATOR(ext.=)",
        ) from None
