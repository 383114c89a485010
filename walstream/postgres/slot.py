"""The replication slot: look at it, create it, end who holds it, drop it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import psycopg
from psycopg import sql
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from walstream.errors import Transient, WalstreamError
from walstream.lsn import Lsn, parse
from walstream.postgres import spill, synchronous_commit
from walstream.postgres.connection import (
    Connection,
    connect,
    readable,
    session,
    translate,
)
from walstream.postgres.slot_health import (
    SlotHealth,
)
from walstream.telemetry import runtime

_WAIT_NOTICE_S: Final = 10.0
_HAS_INVALIDATION_REASON: Final = 170000
_HAS_CONFLICTING: Final = 160000
_HAS_FAILOVER: Final = 170000
_POLL_S: Final = 0.1
_TOO_MANY: Final = "53400"


@dataclass(frozen=True, slots=True)
class Slot:
    """One row of pg_replication_slots."""

    name: str
    kind: str  # logical | physical
    plugin: str | None
    database: str | None
    active_pid: int | None
    wal_status: str | None  # reserved | extended | unreserved | lost
    invalidation: str | None  # why it is of no more use; 15 knows only wal_status
    confirmed_flush_lsn: Lsn | None
    two_phase: bool = False  # gives out transactions when they are prepared
    reader: str = ""  # who reads it now, as `holder` describes it

    @property
    def lost(self) -> str | None:
        """Return why the slot can no longer be read."""
        if self.invalidation:
            return self.invalidation
        return "wal_status lost" if self.wal_status == "lost" else None


def invalidation(version: int) -> sql.SQL:
    """Write the column that says why a slot is of no more use."""
    if version >= _HAS_INVALIDATION_REASON:
        return sql.SQL("invalidation_reason")
    if version >= _HAS_CONFLICTING:
        return sql.SQL("CASE WHEN conflicting THEN 'conflicting' END")
    return sql.SQL("NULL")


def find(connection: Connection, name: str) -> Slot | None:
    """Look a slot up by its name."""
    query = sql.SQL(
        "SELECT slot_name, slot_type, plugin, s.database, active_pid, wal_status, {},"
        " confirmed_flush_lsn::text, two_phase, usename, application_name,"
        " host(client_addr), backend_start"
        " FROM pg_replication_slots s LEFT JOIN pg_stat_activity ON pid = active_pid"
        " WHERE slot_name = %s"
    ).format(invalidation(connection.info.server_version))
    row = connection.execute(query, (name,)).fetchone()
    if row is None:
        return None
    return Slot(
        name=row[0],
        kind=row[1],
        plugin=row[2],
        database=row[3],
        active_pid=row[4],
        wal_status=row[5],
        invalidation=row[6],
        confirmed_flush_lsn=parse(row[7]) if row[7] else None,
        two_phase=row[8],
        reader=_described(row[4], *row[9:]) if row[4] is not None else "",
    )


_HEALTH: Final = """
SELECT coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint,
       wal_status, safe_wal_size, pg_current_wal_flush_lsn()::text, {},
       current_setting('synchronous_standby_names'), current_setting('application_name')
       , coalesce(spill_txns, 0), coalesce(spill_bytes, 0)
FROM pg_replication_slots LEFT JOIN pg_stat_replication_slots USING (slot_name)
WHERE slot_name = %s
"""


def health(connection: Connection, slot: str) -> SlotHealth | None:
    """Measure a slot; None: it is gone."""
    query = sql.SQL(_HEALTH).format(invalidation(connection.info.server_version))
    row = connection.execute(query, (slot,)).fetchone()
    if row is None:
        return None
    held, wal_status, safe_wal_size, flush_lsn, reason, standbys, name, txns, size = row
    lost = reason or ("wal_status lost" if wal_status == "lost" else None)
    # a slot that is lost keeps its restart_lsn, but no WAL
    held = 0 if lost else held
    waits = synchronous_commit.holds_commits(standbys, name)
    said = synchronous_commit.text(standbys, name) if waits else ""
    return SlotHealth(
        held,
        wal_status,
        safe_wal_size,
        parse(flush_lsn),
        lost,
        said,
        txns,
        size,
        spill.on_disk(connection, slot),
    )


def holder(connection: Connection, pid: int) -> str:
    """Describe who holds a slot."""
    row = connection.execute(
        "SELECT usename, application_name, host(client_addr), backend_start"
        " FROM pg_stat_activity WHERE pid = %s",
        (pid,),
    ).fetchone()
    return f"pid {pid}" if row is None else _described(pid, *row)


def _described(
    pid: int,
    user: str | None,
    application: str | None,
    address: str | None,
    since: datetime | None,
) -> str:
    """Describe a session; without the right to see more, by its number."""
    if user is None:
        return f"pid {pid}"
    # who may not see the session's times may not see its address either
    begun = ""
    if since is not None:
        began = since.astimezone(UTC).isoformat(" ", "seconds").removesuffix("+00:00")
        begun = f" at {address or 'local'}, since {began} UTC"
    return f"pid {pid} ({application or 'no name'} of {user}{begun})"


def take_over(dsn: str, pid: int) -> None:
    """End the session that holds the slot."""
    with session(dsn) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", (pid,))


def drop(connection: Connection, name: str) -> None:
    """Drop a slot that nobody reads; none there is fine."""
    if find(connection, name) is not None:
        connection.execute("SELECT pg_drop_replication_slot(%s)", (name,))


def copy(connection: Connection, name: str, to: str) -> None:
    """Make another slot that begins where this one is confirmed, which may be read.

    Raises Transient when there is no room for one more.
    """
    query = "SELECT pg_copy_logical_replication_slot(%s, %s)"
    try:
        connection.execute(query, (name, to))
    except psycopg.errors.ConfigurationLimitExceeded as error:
        raise no_room(to, error) from error


def let_fail_over(dsn: str, name: str) -> None:
    """Keep a slot on standbys too, which a copy of such a slot is not by itself."""
    with connect(dsn, replication=True) as replication:
        if replication.info.server_version < _HAS_FAILOVER:
            return
        command = f"ALTER_REPLICATION_SLOT {quoted(name)} (FAILOVER true)"
        result = replication.pgconn.exec_(command.encode())
        if result.status != ExecStatus.COMMAND_OK:
            error = psycopg.errors.error_from_result(result)
            raise translate(error, f"keeping slot {name!r} on standbys")


def no_room(name: str, error: psycopg.Error) -> Transient:
    """Make the error of a server that has no slot left."""
    return Transient(
        f"creating slot {name!r}: {error.diag.message_primary}",
        hint="drop a slot that is no longer needed, or raise max_replication_slots",
    )


def quoted(name: str) -> str:
    """Quote a name for a replication command, which takes no parameters."""
    return sql.Identifier(name).as_string(None)


@dataclass(frozen=True, slots=True)
class Created:
    """A new slot. Its snapshot lives until the connection's next command."""

    consistent_point: Lsn
    snapshot: str
    connection: Connection


@dataclass(frozen=True, slots=True)
class WaitPolicy:
    """Options of a wait: its end, and the callback for the reason of a delay."""

    stopped: runtime.ThreadEvent
    tell: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SlotSpec:
    """The slot that is wanted."""

    name: str
    failover: bool = False
    temporary: bool = False  # ends with its connection


def create(dsn: str, wish: SlotSpec, patience: WaitPolicy) -> Created:
    """Create the slot with its snapshot exported.

    The server waits for the transactions that run: after 10 s `tell` says for which.
    """
    replication = connect(dsn, replication=True)
    options = ["SNAPSHOT 'export'"]
    if wish.failover and replication.info.server_version >= _HAS_FAILOVER:
        options.append("FAILOVER true")
    name = wish.name
    command = (
        f"CREATE_REPLICATION_SLOT {quoted(name)}"
        f"{' TEMPORARY' if wish.temporary else ''} LOGICAL pgoutput"
        f" ({', '.join(options)})"
    )
    pgconn = replication.pgconn
    pgconn.send_query(command.encode())
    began = runtime.monotonic()
    told = False
    try:
        while pgconn.is_busy():
            if readable(pgconn.socket, _POLL_S):
                pgconn.consume_input()
            if patience.stopped.is_set():
                raise Transient("stopped while the slot was being created")
            if not told and runtime.monotonic() - began > _WAIT_NOTICE_S:
                told = True
                patience.tell(_blockers(dsn))
        result = pgconn.get_result()
        if result is None or result.status != ExecStatus.TUPLES_OK:
            raise _refused(result, name)
        point = (result.get_value(0, 1) or b"").decode()
        snapshot = (result.get_value(0, 2) or b"").decode()
        while pgconn.get_result() is not None:
            pass
    except psycopg.Error as error:
        replication.close()
        raise translate(error, f"creating slot {name!r}") from error
    except BaseException:
        replication.close()
        raise
    return Created(parse(point), snapshot, replication)


def _refused(result: PGresult | None, name: str) -> WalstreamError:
    if result is None:
        return Transient(f"creating slot {name!r}: the connection broke")
    error = psycopg.errors.error_from_result(result)
    if error.sqlstate == _TOO_MANY:
        return no_room(name, error)
    return translate(error, f"creating slot {name!r}")


def _blockers(dsn: str) -> str:
    """Name the sessions whose transactions the slot waits for."""
    with session(dsn) as connection:
        rows = connection.execute(
            "SELECT pid, usename, extract(epoch FROM now() - xact_start)::int"
            " FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
            " AND pid <> pg_backend_pid() ORDER BY xact_start"
        ).fetchall()
    return ", ".join(f"pid {pid} of {user}, {age} s old" for pid, user, age in rows)
