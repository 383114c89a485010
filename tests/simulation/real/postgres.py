"""A database of a real PostgreSQL, as acts are done to it."""

import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from psycopg import conninfo

from tests.simulation.real.client import Client
from tests.simulation.real.statements import StatementWriter
from tests.simulation.schedule import TABLES
from tests.support.deadline import wait_until
from walstream.lsn import Lsn, parse
from walstream.postgres import catalog, slot
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import session
from walstream.postgres.slot import Slot
from walstream.sources.postgres.incremental.chunk import Visibility

Connection = psycopg.Connection[tuple[Any, ...]]
PUBLICATION: Final = "comparison"
_XID: Final = "SELECT pg_current_xact_id_if_assigned()::text"


@dataclass
class Real:
    """One database; its slots' names begin with the database's."""

    dsn: str
    restart: Callable[[], None] = lambda: None  # after a crash
    _open: list[Connection] = field(default_factory=list)
    _streams: dict[int, Connection] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._session = self._connect()

    def _connect(self) -> Connection:
        return psycopg.connect(self.dsn, autocommit=True)

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self._session.execute(statement)

    def _fetch(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._session.execute(query, values).fetchall()

    def establish(self, statements: Sequence[str]) -> None:
        """Make the tables, and the publication of them."""
        names = ", ".join(f"public.{name}" for name in TABLES)
        self.execute(
            *statements,
            "CREATE SCHEMA aside",
            "CREATE TABLE aside.noise (id bigserial PRIMARY KEY)",
            f"CREATE PUBLICATION {PUBLICATION} FOR TABLE {names}",
        )

    # what clients do

    def begin(self) -> int:
        connection = self._connect()
        connection.execute("BEGIN")
        self._open.append(connection)
        ((xid,),) = connection.execute("SELECT pg_current_xact_id()::text").fetchall()
        return int(xid)

    def take(self, number: int) -> Connection:
        """Take one of the transactions that are open, or begin one."""
        if self._open:
            return self._open.pop(number % len(self._open))
        connection = self._connect()
        connection.execute("BEGIN")
        return connection

    @staticmethod
    def write(connection: Connection, writer: StatementWriter) -> None:
        for statement in writer.statements:
            connection.execute(statement)

    def end_of(self, connection: Connection, how: str) -> int:
        """Commit or roll back; give the transaction's number, 0: it had none."""
        ((xid,),) = connection.execute(_XID).fetchall()
        connection.execute(how)
        connection.close()
        return int(xid or 0)

    def pass_by(self) -> int:
        ((xid,),) = self._fetch("SELECT pg_current_xact_id()::text")
        return int(xid)

    def roll_back(self) -> None:
        for connection in self._open:
            connection.execute("ROLLBACK")
            connection.close()
        self._open.clear()

    def say(self) -> None:
        self._fetch("SELECT pg_logical_emit_message(false, 'p', 'alone')")

    def grow(self) -> None:
        self.execute("INSERT INTO aside.noise DEFAULT VALUES")

    def checkpoint(self) -> None:
        self.execute("CHECKPOINT")

    @property
    def end(self) -> Lsn:
        """Behind all that was written so far, and where each walsender comes to.

        Not where the WAL is flushed: that may be amid a record of somebody else, the
        rest of which nobody flushes.
        """
        ((lsn,),) = self._fetch("SELECT pg_current_wal_insert_lsn()::text")
        self.grow()  # its commit is behind that, and flushed
        return parse(lsn)

    @staticmethod
    def pause(seconds: float) -> None:
        time.sleep(seconds)

    def terminate(self, slot_name: str) -> None:
        """End the walsender that reads a slot."""
        self._fetch(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
            " WHERE slot_name = %s AND active",
            slot_name,
        )

    def create(self, name: str) -> None:
        self._fetch("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", name)

    def copy(self, name: str, to: str) -> None:
        with session(self.dsn) as connection:
            slot.copy(connection, name, to)

    def drop(self, name: str) -> None:
        with session(self.dsn) as connection:
            slot.drop(connection, name)

    def crash(self) -> None:
        """Have the server stop at once, and start again."""
        self.close()
        self.restart()
        self._session = self._connect()

    # what they see

    def start(self, command: str) -> Client:
        """Begin a stream."""
        dsn = conninfo.make_conninfo(self.dsn, replication="database")
        connection = psycopg.connect(dsn, autocommit=True)
        try:
            connection.execute(command.encode())
        except psycopg.Error:
            connection.close()
            raise
        pgconn = connection.pgconn
        pgconn.nonblocking = 1
        client = Client(pgconn, lambda s: select.select([pgconn.socket], [], [], s))
        self._streams[id(client)] = connection
        return client

    def cut(self, client: Client, how: str) -> None:
        """End a stream as a process dies, or as an administrator does."""
        connection = self._streams.pop(id(client))
        pid = connection.info.backend_pid
        if how == "the server's":
            self._fetch("SELECT pg_terminate_backend(%s)", pid)
        elif how == "its process's":
            with socket.socket(fileno=connection.pgconn.socket) as ours:
                ours.shutdown(socket.SHUT_RDWR)
                ours.detach()
        gone = "SELECT pid FROM pg_stat_replication WHERE pid = %s"
        connection.close()
        wait_until(lambda: not self._fetch(gone, pid), 30, "the walsender is gone")

    def slot(self, name: str) -> Slot | None:
        with session(self.dsn) as connection:
            return slot.find(connection, name)

    def facts(self) -> dict[str, TableFacts]:
        with session(self.dsn) as connection:
            found = catalog.tables(connection)
        return {name: one for name, one in found.items() if one.name in TABLES}

    def rows(self) -> dict[str, dict[str, dict[str, Any]]]:
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for name in TABLES:
            cursor = self._session.execute(f"SELECT * FROM public.{name}")
            columns = [one.name for one in cursor.description or ()]
            rows = [dict(zip(columns, map(_text, row), strict=True)) for row in cursor]
            found[name] = {str(row["id"]): row for row in rows}
        return found

    def snapshot(self) -> Visibility:
        ((text,),) = self._fetch("SELECT pg_current_snapshot()::text")
        return Visibility.of(text)

    def close(self) -> None:
        for connection in [*self._open, *self._streams.values(), self._session]:
            connection.close()
        self._open.clear()
        self._streams.clear()


def _text(value: object) -> str | None:
    return None if value is None else str(value).rstrip("~")
