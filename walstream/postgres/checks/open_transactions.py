"""Transactions that a new slot has to wait for."""

from collections.abc import Iterator
from typing import Final

from walstream.errors import Repair
from walstream.finding import Finding, warning
from walstream.postgres import quoting
from walstream.postgres.checks.context import ServerContext
from walstream.postgres.start_table import Step

OLD_S: Final = 10  # others end by themselves
_WHY: Final = "the slot can only be created after it ends: run would wait"

# Of all databases. Who may not read all statistics sees only sessions of its own role.
_SESSIONS: Final = """
SELECT pid, coalesce(usename::text, '?'), datname::text,
  extract(epoch FROM clock_timestamp() - xact_start)::int
FROM pg_stat_activity
WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
  AND xact_start < clock_timestamp() - %s * interval '1 s'
ORDER BY xact_start
"""
_PREPARED: Final = """
SELECT gid, owner::text, database::text,
  extract(epoch FROM clock_timestamp() - prepared)::int
FROM pg_prepared_xacts WHERE prepared < clock_timestamp() - %s * interval '1 s'
ORDER BY prepared
"""


def look(seen: ServerContext) -> Iterator[Finding]:
    """Name them, where a slot has to be created."""
    if seen.step is not Step.CREATE:
        return
    execute = seen.connection.execute
    for pid, user, database, age_s in execute(_SESSIONS, (OLD_S,)).fetchall():
        yield warning(
            "long-transaction",
            f"pid {pid}",
            f"a transaction of {user} in {database!r} has run for {age_s} s",
            _WHY,
            Repair(sql=f"SELECT pg_terminate_backend({pid});"),
        )
    for gid, owner, database, age_s in execute(_PREPARED, (OLD_S,)).fetchall():
        yield warning(
            "prepared-transaction",
            f"prepared transaction {gid}",
            f"of {owner} in {database!r} has waited for {age_s} s",
            _WHY,
            Repair(
                sql=f"ROLLBACK PREPARED {quoting.text(gid)};",
                then=f"in the database {database!r}; or COMMIT PREPARED there",
            ),
        )
