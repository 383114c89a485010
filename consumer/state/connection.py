"""Connections to the application's database, and which of their errors pass by."""

from collections.abc import Callable
from typing import Any, Final, LiteralString

import psycopg
from psycopg import IsolationLevel
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from consumer.pg_catalog import IS
from walstream.errors import ConfigError

_DEFAULTS: Final = {
    "connect_timeout": 10,
    # a server that vanished is noticed within a minute
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 4,
    # the same where data is under way: keepalives are sent only when there is none
    "tcp_user_timeout": 30_000,
}
_PASSING: Final = {
    "40001",  # serialization_failure
    "40P01",  # deadlock_detected
    "25P03",  # idle_in_transaction_session_timeout
    "25P04",  # transaction_timeout
    "25006",  # read_only_sql_transaction: a server that is no longer the primary
    "53100",  # disk_full
    "53200",  # out_of_memory
    "55P03",  # lock_not_available
    "57014",  # query_canceled: a statement_timeout, or a person
    "57P01",  # admin_shutdown
    "57P02",  # crash_shutdown
    "57P03",  # cannot_connect_now
    "57P05",  # idle_session_timeout
    "53300",  # too_many_connections
}
_CONNECTION_LOST: Final = "08"  # a class
COMMITTED: Final = (
    "SELECT pg_catalog.pg_xact_status(%s::pg_catalog.text::pg_catalog.xid8)"
    f" {IS} 'committed'"
)
"""Asks whether the transaction of an id was committed."""
Statement = Callable[
    [psycopg.Connection[Any], LiteralString, tuple[str]], psycopg.Cursor[TupleRow]
]


def connect(
    dsn: str, group: str, isolation: IsolationLevel | None = None
) -> psycopg.Connection[Any]:
    """Connect, outside of a transaction; what the dsn says comes first.

    Transactions have this isolation level; None: that of the dsn, role or database.
    """
    try:
        given = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # libpq's words hold pieces of it: of the password, too
        raise ConfigError(
            f"the DSN of group {group} cannot be read",
            hint="either postgresql://user@host/database, or: host=... dbname=...",
        ) from None
    added = {name: value for name, value in _DEFAULTS.items() if name not in given}
    whole = make_conninfo(
        dsn,
        fallback_application_name=f"consumer {group}"[:63],
        client_encoding="utf8",  # any text of an op, whatever PGCLIENTENCODING says
        **added,
    )
    connection = psycopg.connect(whole, autocommit=True)
    if isolation is not None:
        connection.isolation_level = isolation
    return connection


def refusal(error: psycopg.OperationalError) -> str:
    """Return the words of a server that cannot be reached, without a DSN's secrets."""
    if "@" in str(error):  # a password's, most likely: the host begins behind it
        return "write @ in a URI's password as %40"
    return str(error)


def passes(error: BaseException, connection: psycopg.Connection[Any]) -> bool:
    """Return whether the same transaction, begun again, may succeed."""
    if connection.broken:
        return True  # whatever the handler made of it
    cause: BaseException | None = error
    seen: list[BaseException] = []  # `raise error from error` makes a ring of them
    while cause is not None and not any(cause is one for one in seen):
        if isinstance(cause, psycopg.Error):
            state = cause.sqlstate or ""
            return state in _PASSING or state.startswith(_CONNECTION_LOST)
        seen.append(cause)
        cause = cause.__cause__
    return False


def was_committed(run: Statement, tx: psycopg.Connection[Any], xid: str) -> bool:
    """Return whether this transaction was committed, as far as can be told."""
    if tx.closed:
        return False
    try:
        row = run(tx, COMMITTED, (xid,)).fetchone()
    except psycopg.Error:
        return False
    return bool(row and row[0])
