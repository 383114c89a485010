"""What walstream must know of a server before it streams from it."""

from dataclasses import dataclass
from typing import Final

from walstream.errors import ConfigError, PermissionLacking
from walstream.lsn import Lsn, parse
from walstream.postgres.connection import Connection

_OLDEST: Final = 150000
_MAX_STATUS_INTERVAL_S: Final = 10.0

_FACTS: Final = """
SELECT current_setting('server_version_num')::int,
       (SELECT system_identifier FROM pg_control_system()),
       (SELECT timeline_id FROM pg_control_checkpoint()),
       current_database(),
       pg_is_in_recovery(),
       current_setting('wal_level'),
       current_setting('server_encoding'),
       (SELECT setting::int FROM pg_settings WHERE name = 'wal_sender_timeout'),
       (SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user)
"""


@dataclass(frozen=True, slots=True)
class Server:
    version: int  # 180006
    system_identifier: int
    timeline: int
    database: str
    in_recovery: bool
    wal_level: str
    encoding: str
    wal_sender_timeout_ms: int  # 0: never
    may_replicate: bool
    flush_lsn: Lsn = 0

    @property
    def status_interval_s(self) -> float:
        """The longest time between two status updates."""
        if not self.wal_sender_timeout_ms:
            return _MAX_STATUS_INTERVAL_S
        return min(_MAX_STATUS_INTERVAL_S, self.wal_sender_timeout_ms / 3000)


def look(connection: Connection) -> Server:
    """Ask a server for the facts."""
    row = connection.execute(_FACTS).fetchone()
    if row is None:
        raise ConfigError("PostgreSQL did not say what it is")
    flush_lsn = 0
    if not row[4]:
        answer = connection.execute("SELECT pg_current_wal_flush_lsn()::text")
        found = answer.fetchone()
        flush_lsn = parse(found[0]) if found else 0
    return Server(*row, flush_lsn=flush_lsn)


def check(server: Server, encoding: str = "") -> None:
    """Refuse a server that cannot be streamed from, with what would cure it."""
    if server.version < _OLDEST:
        raise ConfigError(
            f"PostgreSQL {server.version // 10000} is too old: walstream reads 15 to 18"
        )
    if server.in_recovery:
        raise ConfigError(
            "this server is a standby", hint="name the primary in the source's dsn"
        )
    if server.wal_level != "logical":
        raise ConfigError(
            f"wal_level is {server.wal_level!r}, not 'logical'",
            hint="run: ALTER SYSTEM SET wal_level = 'logical'; then restart PostgreSQL",
        )
    if not server.may_replicate:
        raise PermissionLacking(
            "the dsn's role may not replicate",
            hint="run as a superuser: ALTER ROLE the_role REPLICATION",
        )
    if server.encoding == "SQL_ASCII" and not encoding:
        raise ConfigError(
            f"database {server.database!r} is SQL_ASCII: its bytes may be anything",
            hint="say what they are in the source's `encoding`, for example UTF8",
        )
