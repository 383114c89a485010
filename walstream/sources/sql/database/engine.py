"""Engines and sessions: every poll sees what is committed, and nothing hangs for ever.

A session reads only. Its time zone is UTC, so that no setting of a server changes how
the same row is written.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event
from sqlalchemy.engine.interfaces import (
    DBAPIConnection,
    DBAPICursor,
    Dialect,
    ExecutionContext,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from walstream.config.password_command import password_of
from walstream.config.password_command_dsn import take_out
from walstream.config.tls_files import refuse_missing
from walstream.errors import ConfigError
from walstream.sources.sql.database import (
    psycopg2_text,
    psycopg_text,
    pymysql_tls,
    search_path,
)
from walstream.sources.sql.database.driver import place, resolve
from walstream.sources.sql.database.errors import translate
from walstream.sources.sql.database.page import ROWS

_CONNECT_S: Final = 10
_READ_S: Final = 300  # silence of a server that has to sort before its first row
_WRITE_S: Final = 60
_LOCK_S: Final = 10
_Limit = int | str | None
_LIBPQ: Final[Mapping[str, int | str]] = {
    "connect_timeout": _CONNECT_S,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "walstream",
    # without one OpenSSL asks the terminal for an encrypted key's
    "sslpassword": "none",
    "client_encoding": "UTF8",  # as setting it later would be too late for SQLAlchemy
}
_LIMITS: Final[Mapping[str, Mapping[str, _Limit]]] = {  # by driver; the URL's own win
    "pymysql": {
        "connect_timeout": _CONNECT_S,
        "read_timeout": _READ_S,
        "write_timeout": _WRITE_S,
    },
    "mysqldb": {
        "connect_timeout": _CONNECT_S,
        "read_timeout": _READ_S,
        "write_timeout": _WRITE_S,
        "charset": "utf8mb4",
    },
    "mariadbconnector": {
        "connect_timeout": _CONNECT_S,
        "read_timeout": _READ_S,
        "write_timeout": _WRITE_S,
    },
    "mysqlconnector": {"connection_timeout": _CONNECT_S},
    # a pooler between gives the next statement another session
    "psycopg": {**_LIBPQ, "prepare_threshold": None},
    "psycopg2": _LIBPQ,
    "pyodbc": {"timeout": _CONNECT_S},
    "pymssql": {"login_timeout": _CONNECT_S, "timeout": _READ_S},
    "oracledb": {"tcp_connect_timeout": _CONNECT_S},
    "pysqlite": {"timeout": _LOCK_S},
}
# or MySQL's REPEATABLE READ would show each poll what the first one saw. Not
# PostgreSQL's: its cursors want a transaction
_ISOLATION: Final[Mapping[str, str]] = {
    "mysql": "AUTOCOMMIT",
    "mariadb": "AUTOCOMMIT",
    "mssql": "AUTOCOMMIT",
    "oracle": "AUTOCOMMIT",
    "sqlite": "AUTOCOMMIT",
}
_MYSQL_SETTINGS: Final = (
    "SET SESSION time_zone = '+00:00'",
    f"SET SESSION lock_wait_timeout = {_LOCK_S}",
    "SET SESSION TRANSACTION READ ONLY",
    # a server's READ UNCOMMITTED would show rows that are rolled back later
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    # a CHAR is written in one way, whatever the server's mode is at the time
    "SET SESSION sql_mode = REPLACE(@@SESSION.sql_mode, 'PAD_CHAR_TO_FULL_LENGTH', '')",
)
_SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "mysql": _MYSQL_SETTINGS,
    "mariadb": _MYSQL_SETTINGS,
    "sqlite": ("PRAGMA query_only = ON",),
}
# of each transaction: what a session keeps, a pooler hands on to the next client
_POSTGRES: Final[dict[str, str]] = {
    # reg* values carry their schema, and no name of ours is led astray
    "search_path": "pg_catalog, pg_temp",
    "transaction_read_only": "on",
    # a row that a policy hides is an error, and not a missing key
    "row_security": "off",
    "lock_timeout": f"{_LOCK_S}s",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "xmlbinary": "base64",
    "lc_monetary": "C",
    "quote_all_identifiers": "off",
}

# the extension's type, in whatever schema it is; of that name there may be others
_HSTORE: Final = """
SELECT t.oid, t.typarray FROM pg_extension e
JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
  AND d.classid = 'pg_type'::regclass AND d.deptype = 'e'
JOIN pg_type t ON t.oid = d.objid AND t.typname = 'hstore'
WHERE e.extname = 'hstore'
"""
_REGISTER: Final = {
    "psycopg": psycopg_text.register,
    "psycopg2": psycopg2_text.register,
}


@dataclass(frozen=True, slots=True)
class Database:
    """A URL that nobody prints; goes into Spark's tasks."""

    url: str = field(repr=False)

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """Use one session, and no more of it."""
        with session(open_engine(self.url)) as connection:
            yield connection


@lru_cache(maxsize=64)
def open_engine(url: str) -> Engine:
    """Make an engine, which connects to nothing yet; ConfigError if it cannot be made.

    It keeps no connection, so one does for all: each session is one, closed at its end.
    """
    url, command = take_out(url)
    target = resolve(url)
    isolation = _ISOLATION.get(target.get_backend_name())
    options: dict[str, object] = {"isolation_level": isolation} if isolation else {}
    if target.get_driver_name() in _REGISTER:
        options["use_native_hstore"] = (
            False  # it would be looked for by the role's path
        )
    try:
        engine = create_engine(
            target,
            poolclass=NullPool,
            connect_args=limits(target),
            hide_parameters=True,
            **options,
        )
    except (ArgumentError, TypeError, ValueError) as error:
        raise ConfigError(f"the url of {place(target)} is refused: {error}") from None
    if command:
        event.listen(engine, "do_connect", _Password(command))
    if engine.dialect.name == "postgresql":
        event.listen(engine, "do_connect", _connect_to_postgres)
        event.listen(engine, "begin", _begin_in_postgres)
    else:
        event.listen(engine, "connect", _Prepare(engine))
    if engine.dialect.driver == "psycopg":
        event.listen(engine, "before_cursor_execute", _before_psycopg)
    if engine.dialect.driver == "pymysql":
        event.listen(engine, "do_connect", pymysql_tls.connect)
    return engine


class _Password:
    """Fetches each connection's password by its command, before it connects."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command

    def __call__(
        self,
        _dialect: object,
        _record: object,
        _args: object,
        options: dict[str, object],
    ) -> None:
        options["password"] = password_of(self._command)


def limits(url: URL) -> dict[str, _Limit]:
    """Return the arguments that keep a driver from waiting for ever."""
    known = _LIMITS.get(url.get_driver_name(), {})
    return {name: limit for name, limit in known.items() if name not in url.query}


@contextmanager
def session(engine: Engine) -> Iterator[Connection]:
    """Connect, and disconnect at the end; what a driver raises within is made ours."""
    where = place(engine.url)
    _must_be_there(engine.url)
    if engine.dialect.name == "postgresql":
        refuse_missing(dict(engine.url.query), os.environ, "url")
    secret = str(engine.url.password or "")
    try:
        connection = engine.connect()
    except Exception as error:  # noqa: BLE001 - whatever a driver says of its arguments
        raise translate(error, f"connecting to {where}", secret) from None
    try:
        yield connection
    except (SQLAlchemyError, engine.dialect.loaded_dbapi.Error) as error:
        raise translate(error, f"reading {where}", secret) from None
    finally:
        with suppress(SQLAlchemyError, OSError):  # broken: nothing is left to close
            connection.close()


class _Prepare:
    """Settings of each connection before it is used."""

    def __init__(self, engine: Engine) -> None:
        self._dialect = engine.dialect

    def __call__(self, connection: DBAPIConnection, _record: object) -> None:
        cursor = connection.cursor()
        for setting in _SETTINGS.get(self._dialect.name, ()):
            cursor.execute(setting)
        cursor.close()


def _connect_to_postgres(
    dialect: Dialect,
    record: ConnectionPoolEntry,
    args: Sequence[object],
    options: Mapping[str, object],
) -> DBAPIConnection:
    """Connect in the place of SQLAlchemy, which would ask by the role's path first.

    The transaction stays open, with its settings: SQLAlchemy asks within it, or goes
    on with it.
    """
    connection = dialect.connect(*args, **options)
    try:
        dialect.set_isolation_level(connection, "READ COMMITTED")
        cursor = connection.cursor()
        cursor.execute(search_path.ASKED)
        ((record.info[search_path.OWN],),) = cursor.fetchall()
        cursor.execute(_postgres_settings())
        cursor.execute(_HSTORE)
        hstore = cursor.fetchone()
        cursor.close()
    except BaseException:
        connection.close()
        raise
    if (register := _REGISTER.get(dialect.driver)) is not None:
        register(connection, hstore)
    return connection


def _begin_in_postgres(connection: Connection) -> None:
    connection.exec_driver_sql(_postgres_settings())


def _postgres_settings() -> str:
    """Return the statement that makes them for the transaction alone."""
    calls = (
        f"pg_catalog.set_config('{name}', '{value}', true)"
        for name, value in _POSTGRES.items()
    )
    return f"SELECT {', '.join(calls)}"


def _before_psycopg(
    _connection: object,
    cursor: DBAPICursor,
    _statement: str,
    _parameters: object,
    context: ExecutionContext,
    _many: object,
) -> None:
    if context.execution_options.get(ROWS):
        psycopg_text.let_json_be(cursor)


def _must_be_there(url: URL) -> None:
    """Refuse a file that SQLite would make."""
    name = url.database or ""
    if url.get_driver_name() != "pysqlite" or name in {"", ":memory:"}:
        return
    if not name.startswith("file:") and not Path(name).exists():
        raise ConfigError(
            f"SQLite file {name} does not exist",
            hint="correct the url: sqlite:///name is relative to walstream's working "
            "directory, sqlite:////name is absolute",
        )
