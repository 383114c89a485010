"""The open transactions that may have drawn a key of a table.

    PostgreSQL: those that hold a writer's lock on the table, one of its partitions or
      the sequence of its key: a number is drawn under such a lock. (The xmin of a
      snapshot would not do: a number may be drawn before there is an xid.)
    MySQL, MariaDB: those of information_schema.innodb_trx that write

Only where the engine itself gives the keys, one by one, on this very server: elsewhere
a lower key may be written by a transaction that begins later.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from walstream.errors import NO_REPAIR, PermissionLacking, Repair
from walstream.sources.sql.database.errors import translate
from walstream.sources.sql.database.grant import account
from walstream.sources.sql.database.sequence import DRAWN, asked
from walstream.sources.sql.database.shape import SqlTableShape
from walstream.telemetry import runtime

# InnoDB draws a number just before its transaction can be seen
_INNODB_SLACK_US: Final = 2_000_000
# it shows everybody an old list until nobody has asked for 0.1 s
_INNODB_IDLE_S: Final = 0.11
_INNODB_TRIES: Final = 5
_PREPARED: Final = "-1/"  # found by PostgreSQL after its restart
_DETACHED: Final = "0/"  # of MySQL's XA, whose session is gone


@dataclass(frozen=True, slots=True)
class Open:
    """Each under a name that stays, unless it is nameless."""

    names: frozenset[str]
    slack_us: int = 0  # how late one may be seen
    fresh: bool = True  # False: the list may be of any time before


@dataclass(frozen=True, slots=True)
class Lacking:
    """Reason why nothing can be known."""

    words: str
    repair: Repair = NO_REPAIR


def open_transactions(connection: Connection, shape: SqlTableShape) -> Open | Lacking:
    """List them, as they are now."""
    ask = _ENGINES.get(connection.dialect.name)
    if ask is None:
        return Lacking("this engine does not show open transactions")
    try:
        with connection.begin():
            return ask(connection, shape)
    except DBAPIError as error:
        refusal = translate(error)
        if refusal.retryable:
            raise
        return Lacking(str(refusal.args[0]), refusal.repair)


def is_nameless(name: str) -> bool:
    """Whether it may have had another name: it is older than it seems."""
    return name.startswith((_PREPARED, _DETACHED))


_POSTGRES: Final = text(f"""
{DRAWN}, sequences AS (SELECT s.* FROM pg_sequence s JOIN drawn d ON d.oid = s.seqrelid)
SELECT pg_is_in_recovery(),
  EXISTS (SELECT FROM pg_subscription_rel WHERE srrelid IN (SELECT oid FROM family)),
  (SELECT count(*) FROM sequences),
  (SELECT bool_and(seqcache = 1 AND seqincrement = 1 AND NOT seqcycle) FROM sequences),
  ARRAY(SELECT DISTINCT virtualtransaction FROM pg_locks
    WHERE locktype = 'relation' AND mode = 'RowExclusiveLock'
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND relation IN (SELECT oid FROM family UNION SELECT seqrelid FROM sequences))
""")  # noqa: S608 - two constants


def _ask_postgres(connection: Connection, shape: SqlTableShape) -> Open | Lacking:
    row = connection.execute(_POSTGRES, asked(shape)).one()
    standby, subscribed, sequences, plain, names = row
    if standby:
        return Lacking("a standby does not show the transactions of its primary")
    if subscribed:
        return Lacking(
            "a subscription writes the table: the writing transactions are not "
            "visible here"
        )
    if not sequences:
        return Lacking(f"no sequence of PostgreSQL gives {shape.key.name} its values")
    if not plain:
        return Lacking(
            f"the sequence of {shape.key.name} hands out several values at a time"
        )
    return Open(frozenset(names))


# a join of the two would look at every table of the server
_MYSQL_TABLE: Final = text("""
SELECT
  (SELECT engine FROM information_schema.tables WHERE table_name = :name
    AND table_schema = CASE :schema WHEN '' THEN DATABASE() ELSE :schema END),
  (SELECT extra FROM information_schema.columns WHERE table_name = :name
    AND table_schema = CASE :schema WHEN '' THEN DATABASE() ELSE :schema END
    AND column_name = :key)
""")
_MYSQL_SERVER: Final = text("""
SHOW GLOBAL VARIABLES WHERE Variable_name IN
  ('read_only', 'wsrep_on', 'auto_increment_increment')
""")
_MYSQL_PLAIN: Final = {
    "read_only": ("OFF", "0"),
    "wsrep_on": ("OFF", "0"),
    "auto_increment_increment": ("1",),
}
_MYSQL_REPLICA: Final = text("""
SELECT count(*) FROM information_schema.processlist
WHERE user = 'system user' AND command NOT IN ('Daemon', 'Sleep')
""")
# Our own statement is in a list that is not old. Who holds no lock and uses no table
# has inserted nothing.
_MYSQL_OPEN: Final = text("""
SELECT trx_mysql_thread_id, trx_started, COALESCE(LOCATE(:mine, trx_query), 0) > 0
FROM information_schema.innodb_trx WHERE COALESCE(LOCATE(:mine, trx_query), 0) > 0
  OR trx_is_read_only = 0 AND (trx_lock_structs > 0 OR trx_tables_in_use > 0)
""")
_MYSQL_IDENTITY: Final = text("SELECT @@hostname, @@port, @@server_id")
_MYSQL_USER: Final = text("SELECT CURRENT_USER()")


def _ask_mysql(connection: Connection, shape: SqlTableShape) -> Open | Lacking:
    if lacking := _mysql_lacks(connection, shape):
        return Lacking(lacking)
    try:
        return _looks(connection).take(connection)
    except DBAPIError as error:
        if not isinstance(translate(error), PermissionLacking):
            raise
        user = account(str(connection.execute(_MYSQL_USER).scalar()))
        return Lacking(
            "the right to see transactions is missing",
            Repair(sql=f"GRANT PROCESS ON *.* TO {user};"),
        )


class _Looks:
    """The looks at one server, one by one: each makes the list old for the next."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: tuple[float, Open] | None = None  # when it began, what was fresh

    def take(self, connection: Connection) -> Open:
        """Look, or take what another saw who began after this was asked for."""
        asked = runtime.monotonic()
        with self._lock:
            return self._since(asked) or self._look(connection)

    def _since(self, asked: float) -> Open | None:
        if self._last is None:
            return None
        began, found = self._last
        age_s = runtime.monotonic() - began
        if began <= asked or age_s > _INNODB_IDLE_S:
            return None
        # the caller counts its look as of now
        return replace(found, slack_us=found.slack_us + int(age_s * 1e6))

    def _look(self, connection: Connection) -> Open:
        for _ in range(_INNODB_TRIES):
            began = runtime.monotonic()
            found = _innodb_transactions(connection)
            if found.fresh:
                self._last = began, found
                break
            runtime.sleep(_INNODB_IDLE_S * runtime.uniform(1, 2))
        return found


_LOOKS: Final[dict[tuple[object, ...], _Looks]] = {}
_LOOKS_GUARD: Final = threading.Lock()


def _looks(connection: Connection) -> _Looks:
    url = connection.engine.url
    # one name may lead to several servers
    server = tuple(connection.execute(_MYSQL_IDENTITY).one())
    place = (url.host, url.port, url.query.get("unix_socket"), *server)
    with _LOOKS_GUARD:
        return _LOOKS.setdefault(place, _Looks())


def _innodb_transactions(connection: Connection) -> Open:
    mine = runtime.token_hex(8)
    connection.exec_driver_sql("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    try:
        rows = connection.execute(_MYSQL_OPEN, {"mine": mine}).all()
    finally:
        connection.exec_driver_sql("ROLLBACK")
    names = (f"{thread}/{started}" for thread, started, ours in rows if not ours)
    fresh = any(ours for *_, ours in rows)
    return Open(frozenset(names), _INNODB_SLACK_US, fresh)


def _mysql_lacks(connection: Connection, shape: SqlTableShape) -> str:
    engine, extra = connection.execute(_MYSQL_TABLE, asked(shape)).one()
    if engine != "InnoDB":
        return f"{engine} does not show open transactions"
    if "auto_increment" not in (extra or "").lower():
        return f"{shape.key.name} is not AUTO_INCREMENT"
    for name, value in connection.execute(_MYSQL_SERVER):
        if value.upper() not in _MYSQL_PLAIN[name.lower()]:
            return f"{name} is {value}: another server may write the table"
    if connection.execute(_MYSQL_REPLICA).scalar():
        return "a replica does not show the transactions of its primary"
    return ""


_ENGINES: Final[Mapping[str, Callable[[Connection, SqlTableShape], Open | Lacking]]] = {
    "postgresql": _ask_postgres,
    "mysql": _ask_mysql,
    "mariadb": _ask_mysql,
}
