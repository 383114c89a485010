"""Condition of a part of a table, as the server judges it before anything is read."""

from typing import Final

import psycopg
from psycopg import sql

from walstream.config.condition import condition
from walstream.errors import ConfigError
from walstream.postgres.connection import without_values
from walstream.sources.postgres.backfill.publication_filter import Connection
from walstream.telemetry import runtime

# of the connection or the moment: connections, rollbacks, resources, locks, an operator
_PASSING: Final = ("08", "40", "53", "55", "57")
_OF_CONDITION: Final = ("22", "42")  # of a row's values, or of names and types
_DENIED: Final = "42501"


class UnfitCondition(ConfigError):
    """A condition that passed the check, and that rows cannot be read by."""


def blame(error: psycopg.Error, name: str, where: str) -> None:
    """Raise UnfitCondition if it is why a part of a table cannot be read."""
    state = error.sqlstate or ""
    if where and state.startswith(_OF_CONDITION) and state != _DENIED:
        raise UnfitCondition(
            f"rows of table {name!r} cannot be read by the condition that was asked"
            f" for: {without_values(error)} ({state})",
            hint="ask for the rows by another condition, which takes its place, or "
            "without --where for all of them",
        ) from error


def check_text(where: str) -> str:
    """Return the condition; raise ConfigError unless it may be one expression."""
    try:
        return condition(where) if where else ""
    except ValueError as error:
        raise ConfigError(f"the condition {error}") from None


def check(connection: Connection, schema: str, name: str, where: str) -> None:
    """Raise ConfigError, in the server's words, unless a condition fits a table.

    No row is read, and none written. A condition that names the table would fail where
    partitions are read instead: here it has a name that nobody can know.
    """
    query = sql.SQL("SELECT FROM {} AS {} WHERE ({}) LIMIT 0").format(
        sql.Identifier(schema, name),
        sql.Identifier(f"part_{runtime.token_hex(8)}"),
        sql.SQL(check_text(where)),
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
