"""Findings about settings and age of the server that endanger a stream."""

from collections.abc import Iterator
from typing import Final

from walstream.errors import Repair
from walstream.finding import Finding, note, warning
from walstream.postgres.checks import known_bugs
from walstream.postgres.checks.context import ServerContext
from walstream.telemetry.human import size

_MIB: Final = 1 << 20
_ROOMY: Final = 5  # times `alarm_retained_wal`: the alarm comes long before
_RELOAD: Final = "SELECT pg_reload_conf();"

_SETTINGS: Final = """
SELECT name, setting::bigint FROM pg_settings
WHERE name IN ('max_slot_wal_keep_size', 'idle_replication_slot_timeout')
"""
_HELD: Final = """
SELECT coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), 0)::bigint
FROM pg_replication_slots
"""


def look(seen: ServerContext) -> Iterator[Finding]:
    """Look at what the whole server is set to."""
    rows = seen.connection.execute(_SETTINGS).fetchall()
    settings: dict[str, int] = dict(rows)
    limit = settings.get("max_slot_wal_keep_size", -1)
    ((held,),) = seen.connection.execute(_HELD).fetchall()
    yield from of_limit(limit * _MIB, seen.source.alarm_retained_wal, held)
    yield from of_idleness(settings.get("idle_replication_slot_timeout", 0))
    yield from known_bugs.look(seen.server.version)


def of_limit(limit: int, alarm: int, held: int) -> Iterator[Finding]:
    """Look at max_slot_wal_keep_size, in bytes; below 0 there is none.

    `held` is what the slot behind all others holds: a new limit must not take it away.
    """
    roomy = -(-max(_ROOMY * alarm, 2 * held) // _MIB)
    repair = Repair(
        sql=f"ALTER SYSTEM SET max_slot_wal_keep_size = '{roomy}MB';\n{_RELOAD}",
        then="the server's disk must have room for it",
    )
    if limit < 0:
        yield note(
            "wal-limit",
            "server",
            "max_slot_wal_keep_size is -1: a slot may retain WAL without limit",
            "while walstream or Kafka is down WAL grows until the disk is full and"
            " PostgreSQL stops; with a limit the slot is lost instead, which is a gap",
            repair,
        )
    elif limit <= alarm:
        yield warning(
            "wal-limit",
            "server",
            f"max_slot_wal_keep_size is {size(limit)}, `alarm_retained_wal`"
            f" {size(alarm)}",
            "the slot would be lost before the alarm, which is a gap",
            repair,
        )


def of_idleness(timeout_s: int) -> Iterator[Finding]:
    """Look at idle_replication_slot_timeout (18); 0: none."""
    if timeout_s > 0:
        yield warning(
            "idle-timeout",
            "server",
            f"idle_replication_slot_timeout is {timeout_s} s",
            "a slot that is not read for that long is lost: each longer stop of "
            "walstream then leaves a gap",
            Repair(
                sql=f"ALTER SYSTEM SET idle_replication_slot_timeout = 0;\n{_RELOAD}"
            ),
        )
