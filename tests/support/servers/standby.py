"""A physical standby of a throw-away PostgreSQL, which keeps slots and is promoted."""

from contextlib import suppress

import psycopg

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database
from walstream.testing.servers import LocalPostgres
from walstream.testing.servers.process import Child

_SLOT = "standby"
_SYNCED = """
SELECT FROM pg_replication_slots WHERE slot_name = %s AND synced AND NOT temporary
"""


class Standby(LocalPostgres):
    """Copies its primary at its first start; `promote` makes one of it."""

    def __init__(self, primary: LocalPostgres) -> None:
        self._primary = primary
        Database(primary).fetch(
            "SELECT pg_create_physical_replication_slot(%s, true)", _SLOT
        )
        settings = {
            "primary_conninfo": primary.dsn(),
            "primary_slot_name": _SLOT,
            "hot_standby_feedback": "on",
            "wal_receiver_status_interval": "1s",
        }
        super().__init__(settings=settings)

    def _initialise(self) -> None:
        tool = self.binaries / "pg_basebackup"
        child = Child(
            [tool, "-D", self.data, "-c", "fast", "-R", "-d", self._primary.dsn()],
            log=self.log,
            account=self._account,
            environment={"PATH": "/usr/bin:/bin"},
        )
        assert child.wait(120), "pg_basebackup ends"
        assert child.exit_code == 0, self.log_end()

    def sync(self, slot: str) -> None:
        """Copy the primary's failover slots, until this one could be used here."""
        database = Database(self)

        def synced() -> bool:
            with suppress(psycopg.OperationalError, psycopg.errors.ObjectInUse):
                database.fetch("SELECT pg_sync_replication_slots()")
            return bool(database.fetch(_SYNCED, slot))

        wait_until(synced, 60, f"slot {slot} is on the standby")

    def promote(self) -> None:
        database = Database(self)
        assert database.fetch("SELECT pg_promote(true, 60)") == [(True,)]
        waits = "SELECT FROM pg_replication_slots WHERE synced AND active"
        wait_until(lambda: not database.fetch(waits), 10, "its slots are let go")
