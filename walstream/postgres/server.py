"""Facts about a server that a stream needs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from psycopg.rows import dict_row

from walstream.errors import (
    ConfigError,
    PermissionLacking,
    Repair,
    Transient,
    WalstreamError,
)
from walstream.lsn import Lsn, parse
from walstream.postgres import quoting
from walstream.postgres import synchronous_commit as synchronous
from walstream.postgres.connection import Connection

_OLDEST: Final = 150000
_FROZEN_AFTER_MS: Final = 30_000  # where it has no wal_sender_timeout
_MAX_STATUS_INTERVAL_S: Final = 10.0

_FACTS: Final = """
SELECT (SELECT system_identifier FROM pg_control_system()) AS system_identifier,
       current_database() AS database,
       current_user::text AS role,
       pg_is_in_recovery() AS in_recovery,
       current_setting('wal_level') AS wal_level,
       current_setting('server_encoding') AS encoding,
       current_setting('synchronous_standby_names') AS synchronous,
       current_setting('application_name') AS application,
       (SELECT setting::int FROM pg_settings WHERE name = 'wal_sender_timeout')
         AS wal_sender_timeout_ms,
       (SELECT bool_or(r.rolreplication OR r.rolsuper OR EXISTS
         (SELECT FROM pg_roles m WHERE m.rolname = 'rds_replication'
           AND pg_has_role(r.oid, m.oid, 'member')))
         FROM pg_roles r WHERE r.rolname IN (current_user, session_user))
         AS may_replicate
"""
# The control file still names the old timeline right after a promotion; a WAL file's
# name begins with the timeline that is written to.
_WAL: Final = """
SELECT pg_current_wal_flush_lsn()::text AS flush_lsn,
       pg_walfile_name(pg_current_wal_lsn()) AS wal_file
"""


@dataclass(frozen=True, slots=True)
class Server:
    system_identifier: int
    timeline: int
    database: str
    in_recovery: bool
    wal_level: str
    encoding: str
    wal_sender_timeout_ms: int  # 0: never
    may_replicate: bool
    flush_lsn: Lsn
    role: str = ""  # of our sessions
    version: int = 0  # 150018 is 15.18
    application: str = ""  # name of our sessions
    synchronous: str = ""  # synchronous_standby_names

    @property
    def origin(self) -> str:
        """What a record's source begins with."""
        return f"{self.system_identifier}/{self.database}"

    @property
    def frozen_after_ms(self) -> int:
        """For how long a client may stand still and surely have its slot after it."""
        return self.wal_sender_timeout_ms // 2 or _FROZEN_AFTER_MS

    @property
    def status_interval_s(self) -> float:
        """The longest time between two status updates."""
        if not self.wal_sender_timeout_ms:
            return _MAX_STATUS_INTERVAL_S
        return min(_MAX_STATUS_INTERVAL_S, self.wal_sender_timeout_ms / 3000)


_GENERATED_FROM: Final = 180000


def check_version(version: int) -> None:
    """Refuse a server that is too old for our questions."""
    if version < _OLDEST:
        raise ConfigError(
            f"PostgreSQL {version // 10000} is too old: walstream reads 15 to 18",
            repair=Repair(then="upgrade the server to PostgreSQL 15 or later"),
        )


def look(connection: Connection) -> Server:
    """Ask a server for the facts."""
    version = connection.info.server_version
    check_version(version)
    with connection.cursor(row_factory=dict_row) as cursor:
        facts = cursor.execute(_FACTS).fetchone() or {}
        if not facts["in_recovery"]:
            facts |= cursor.execute(_WAL).fetchone() or {}
    return Server(
        system_identifier=facts["system_identifier"],
        timeline=int(facts.get("wal_file", "0")[:8], 16),
        database=facts["database"],
        in_recovery=facts["in_recovery"],
        wal_level=facts["wal_level"],
        encoding=facts["encoding"],
        wal_sender_timeout_ms=facts["wal_sender_timeout_ms"],
        may_replicate=facts["may_replicate"],
        flush_lsn=parse(facts.get("flush_lsn", "0/0")),
        role=facts["role"],
        version=version,
        application=facts["application"],
        synchronous=facts["synchronous"],
    )


def check(
    server: Server,
    encoding: str = "",
    *,
    resuming: bool = False,
    allow_synchronous: bool = False,
    generated: bool = False,
) -> None:
    """Refuse a server that cannot be streamed from, with what would cure it.

    While `resuming`, a standby may be the primary that is just being promoted.
    """
    for _, problem in problems(
        server,
        encoding,
        resuming=resuming,
        allow_synchronous=allow_synchronous,
        generated=generated,
    ):
        raise problem


def refuse_standby(server: Server, *, resuming: bool = False) -> None:
    """Refuse a standby, which has slots, and ends of its WAL, of its own."""
    if server.in_recovery:
        raise _standby(resuming=resuming)


def _standby(*, resuming: bool) -> WalstreamError:
    kind = Transient if resuming else ConfigError
    return kind(
        "this server is a standby",
        hint="name the primary in the source's dsn",
        repair=Repair(then="name the primary in the source's dsn"),
    )


def problems(
    server: Server,
    encoding: str,
    *,
    resuming: bool,
    allow_synchronous: bool,
    generated: bool,
) -> Iterator[tuple[str, WalstreamError]]:
    """Yield all that `check` refuses, each with a code, the first met first."""
    if server.in_recovery:
        yield "standby", _standby(resuming=resuming)
    if server.wal_level != "logical":
        yield (
            "wal-level",
            ConfigError(
                f"wal_level is {server.wal_level!r}, not 'logical'",
                hint="PostgreSQL does not write to its WAL what a stream needs",
                repair=Repair(
                    sql="ALTER SYSTEM SET wal_level = 'logical';",
                    then="restart PostgreSQL",
                ),
            ),
        )
    if generated and server.version < _GENERATED_FROM:
        yield (
            "generated",
            ConfigError(
                f"PostgreSQL {server.version // 10000} cannot publish generated "
                'columns, and `generated` is "stored"',
                hint='write generated = "none", or upgrade the server to 18',
                repair=Repair(then='write generated = "none"'),
            ),
        )
    if not server.may_replicate:
        yield (
            "replication-right",
            PermissionLacking(
                f"role {server.role!r} may not replicate",
                hint="a superuser can grant it; on Amazon RDS, grant rds_replication "
                "to the role",
                repair=Repair(
                    sql=f"ALTER ROLE {quoting.name(server.role)} REPLICATION;"
                ),
            ),
        )
    if server.encoding == "SQL_ASCII" and not encoding:
        yield (
            "encoding",
            ConfigError(
                f"database {server.database!r} is SQL_ASCII: its texts have no known "
                "encoding",
                hint="name it in the source's `encoding`, for example UTF8",
                repair=Repair(then='name it in the source\'s `encoding`: "UTF8"'),
            ),
        )
    if not allow_synchronous and synchronous.holds_commits(
        server.synchronous, server.application
    ):
        yield (
            "synchronous-standby",
            synchronous.refusal(server.synchronous, server.application),
        )
