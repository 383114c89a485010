"""Every slot of a server: what it is, what it holds, who reads it.

A role with LOGIN REPLICATION may ask: it is not told the address of other roles'
sessions. PostgreSQL 15 and 16 do not know since when nobody reads a slot.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from psycopg import sql
from psycopg.rows import class_row

from walstream.errors import Transient
from walstream.lsn import Lsn, parse
from walstream.postgres import slot as slots
from walstream.postgres.connection import Connection
from walstream.postgres.slot import Slot
from walstream.telemetry import runtime
from walstream.telemetry.json_types import ShownLsn

_RELEASE_S: Final = 5.0  # a walsender notices the end of its client
_LOOK_EVERY_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class SlotReader:
    """The session that holds a slot."""

    pid: int
    application: str | None
    user: str | None
    address: str | None  # null: local, or not told to this role


@dataclass(frozen=True, slots=True)
class SlotFacts:
    """One slot, as its server has it."""

    name: str
    kind: str  # logical | physical
    plugin: str | None
    database: str | None
    reader: SlotReader | None
    inactive_since: datetime | None  # null: in use, or PostgreSQL 15 or 16
    wal_status: str | None  # reserved | extended | unreserved | lost
    invalidation: str | None  # why it cannot be read any more
    restart_lsn: ShownLsn | None
    confirmed_lsn: ShownLsn | None
    held_bytes: int  # of WAL, from restart_lsn to the server's position
    lag_bytes: int | None  # from confirmed_lsn to there; null: physical
    safe_wal_size: int | None  # bytes until the server gives it up; null: no limit
    temporary: bool
    failover: bool | None  # null: PostgreSQL 15 or 16
    synced: bool | None  # likewise
    sources: list[str] = field(default_factory=list)  # configured, that name it

    @property
    def what(self) -> str:
        """Return what kind of slot it is."""
        if self.kind != "logical":
            return self.kind
        return f"{self.plugin}, database {self.database}"


_QUERY: Final = """
SELECT s.slot_name, s.slot_type, s.plugin, s.database, s.active_pid,
  nullif(a.application_name, '') AS application_name, a.usename,
  host(a.client_addr) AS client_addr,
  {inactive_since} AS inactive_since, s.wal_status, {invalidation} AS invalidation,
  s.restart_lsn::text, s.confirmed_flush_lsn::text,
  pg_wal_lsn_diff(here.lsn, s.restart_lsn)::bigint AS held_bytes,
  pg_wal_lsn_diff(here.lsn, s.confirmed_flush_lsn)::bigint AS lag_bytes,
  s.safe_wal_size, s.temporary, {failover} AS failover, {synced} AS synced
FROM pg_replication_slots s
CROSS JOIN (SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
  ELSE pg_current_wal_lsn() END AS lsn) here
LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid
"""
# What a checkpoint has left, and what slots hold beside it.
_OLDEST: Final = """
SELECT min(lsn)::text FROM (SELECT redo_lsn AS lsn FROM pg_control_checkpoint()
  UNION ALL SELECT restart_lsn FROM pg_replication_slots
  WHERE wal_status IS DISTINCT FROM 'lost') kept
"""
_SINCE_17: Final = 170000


class _Row(NamedTuple):
    slot_name: str
    slot_type: str
    plugin: str | None
    database: str | None
    active_pid: int | None
    application_name: str | None
    usename: str | None
    client_addr: str | None
    inactive_since: datetime | None
    wal_status: str | None
    invalidation: str | None
    restart_lsn: str | None
    confirmed_flush_lsn: str | None
    held_bytes: int | None
    lag_bytes: int | None
    safe_wal_size: int | None
    temporary: bool
    failover: bool | None
    synced: bool | None


def every(connection: Connection) -> list[SlotFacts]:
    """Look at all slots, those that hold most first."""
    version = connection.info.server_version
    query = sql.SQL(_QUERY).format(
        invalidation=slots.invalidation(version),
        **{
            name: sql.SQL(f"s.{name}" if version >= _SINCE_17 else "NULL")
            for name in ("inactive_since", "failover", "synced")
        },
    )
    with connection.cursor(row_factory=class_row(_Row)) as cursor:
        found = [_facts(row) for row in cursor.execute(query).fetchall()]
    return sorted(found, key=lambda slot: (-slot.held_bytes, slot.name))


def _facts(row: _Row) -> SlotFacts:
    pid, since = row.active_pid, row.inactive_since
    lost = row.invalidation or ("wal_status lost" if row.wal_status == "lost" else None)
    return SlotFacts(
        name=row.slot_name,
        kind=row.slot_type,
        plugin=row.plugin,
        database=row.database,
        reader=None
        if pid is None
        else SlotReader(pid, row.application_name, row.usename, row.client_addr),
        inactive_since=since.astimezone(UTC) if since and pid is None else None,
        wal_status=row.wal_status,
        invalidation=lost,
        restart_lsn=_lsn(row.restart_lsn),
        confirmed_lsn=_lsn(row.confirmed_flush_lsn),
        # what is invalidated holds nothing, wherever it stopped
        held_bytes=0 if lost else max(0, row.held_bytes or 0),
        lag_bytes=None if row.lag_bytes is None else max(0, row.lag_bytes),
        safe_wal_size=row.safe_wal_size,
        temporary=row.temporary,
        failover=row.failover,
        synced=row.synced,
    )


def _lsn(text: str | None) -> int | None:
    return None if text is None else parse(text)


def find(connection: Connection, name: str) -> SlotFacts | None:
    """Look at one slot by its name."""
    return next((slot for slot in every(connection) if slot.name == name), None)


def oldest_kept(connection: Connection) -> Lsn:
    """Find from where on the server is sure to keep its WAL."""
    row = connection.execute(_OLDEST).fetchone()
    return parse(row[0]) if row and row[0] else 0


def released(connection: Connection, name: str) -> Slot | None:
    """Look a slot up when nobody holds it: whoever ended just now is waited for.

    Raises Transient that names who does not let go.
    """
    deadline = runtime.monotonic() + _RELEASE_S
    while True:
        slot = slots.find(connection, name)
        if slot is None or slot.active_pid is None:
            return slot
        if runtime.monotonic() > deadline:
            raise Transient(
                f"slot {name!r} is in use by"
                f" {slots.holder(connection, slot.active_pid)}",
                hint="stop that one first",
            )
        runtime.sleep(_LOOK_EVERY_S)
