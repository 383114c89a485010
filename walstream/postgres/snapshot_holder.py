"""Holds a snapshot for as long as a backfill reads under it.

A slot's own snapshot ends with the next command of the connection that created it, and
with its idle timeout. So a plain session imports it at once and exports it again.
"""

from typing import Final, Self

import psycopg
from psycopg import sql

from walstream.errors import RETRIED, Transient
from walstream.lsn import Lsn
from walstream.postgres import slot as slots
from walstream.postgres.connection import Connection, connect, session, translate

_TRANSACTION_TIMEOUT_FROM: Final = 170000
_SETTINGS: Final = (
    "SET LOCAL idle_in_transaction_session_timeout = 0;"
    "SET LOCAL statement_timeout = 0;"
    "SET LOCAL idle_session_timeout = 0"
)
# a number alone may be another session's by now
_SESSION: Final = (
    "SELECT pid || ' ' || backend_start FROM pg_stat_activity"
    " WHERE pid = pg_backend_pid()"
)
_THERE: Final = (
    "SELECT pid FROM pg_stat_activity WHERE pid || ' ' || backend_start = %s"
)
_END_WAIT_MS: Final = 10_000
_LOCKS: Final = 0x77_61_6C_73  # of all advisory locks, those of backfills
_LOCK: Final = "SELECT pg_advisory_xact_lock_shared(%s, hashtext(%s))"
_LOCKED: Final = """
SELECT pid FROM pg_locks JOIN pg_database d ON d.oid = database
WHERE locktype = 'advisory' AND datname = current_database() AND granted
  AND objsubid = 2 AND classid::bigint = %s
  AND objid::bigint = hashtext(%s)::bigint & 4294967295
"""


class Holder:
    """A snapshot that others can import by `name`, until `close`.

    What committed below `point` is in it, and nothing else is. It also holds a lock in
    the name of the source's slot, since that has no reader during a backfill.
    """

    def __init__(self, dsn: str, snapshot: str, point: Lsn, slot: str = "") -> None:
        """Import `snapshot`, which its exporter still holds."""
        self.point = point
        self._slot = slot
        self._connection = connect(dsn)
        try:
            self.name = self._take(snapshot)
        except psycopg.Error as error:
            self.close()
            raise translate(error, "holding the slot's snapshot") from error

    @classmethod
    def of_new_slot(cls, dsn: str, created: slots.Created, slot: str) -> Self:
        """Take over the snapshot of a slot that was just created; ends its session.

        A temporary slot ends with it; `slot` is the source's.
        """
        try:
            return cls(dsn, created.snapshot, created.consistent_point, slot)
        finally:
            created.connection.close()

    def _take(self, snapshot: str) -> str:
        connection = self._connection
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute(
            sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot))
        )
        connection.execute(_SETTINGS)
        if self._slot:
            connection.execute(_LOCK, (_LOCKS, self._slot))
        if connection.info.server_version >= _TRANSACTION_TIMEOUT_FROM:
            connection.execute("SET LOCAL transaction_timeout = 0")
        row = connection.execute("SELECT pg_export_snapshot()").fetchone()
        if row is None:
            raise Transient("the server exported no snapshot")
        return str(row[0])

    @property
    def session(self) -> str:
        """Name the server's session that holds it, so that `end` finds it."""
        try:
            row = self._connection.execute(_SESSION).fetchone()
        except psycopg.Error as error:
            raise translate(error, "holding the backfill's snapshot") from error
        return str(row[0]) if row is not None else ""

    def check(self) -> None:
        """Raise Transient when the snapshot is gone with its session."""
        try:
            self._connection.execute("SELECT")
        except psycopg.Error as error:
            raise translate(error, "holding the backfill's snapshot") from error

    def close(self) -> None:
        self._connection.close()


def backfilling(connection: Connection, slot: str) -> int:
    """Return the session of an instance that backfills for a slot; 0: none does."""
    row = connection.execute(_LOCKED, (_LOCKS, slot)).fetchone()
    return int(row[0]) if row is not None else 0


def end(dsn: str, held: str) -> None:
    """End the session that held a snapshot, where its server has not noticed.

    Of a machine that lost its power it would stay for hours. Nobody imports the
    snapshot after this.
    """
    with session(dsn) as connection:
        found = connection.execute(_THERE, (held,)).fetchone()
        if found is None:
            return
        # it waits; False may also mean that the session ended by itself
        connection.execute(
            "SELECT pg_terminate_backend(%s, %s)", (found[0], _END_WAIT_MS)
        )
        if connection.execute(_THERE, (held,)).fetchone() is not None:
            raise Transient(
                "a session that holds an earlier snapshot does not end",
                hint=RETRIED,
            )
