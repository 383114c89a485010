"""Generator of a table's keys: its next key, and whether it is still the same.

    PostgreSQL: the sequence that the key's default or identity names; its file is
      another one after TRUNCATE ... RESTART IDENTITY and ALTER SEQUENCE ... RESTART
    MySQL, MariaDB: the table's AUTO_INCREMENT
    SQLite: sqlite_sequence, of a key that is AUTOINCREMENT

What the engine does not tell, or to this role, is not known: no error comes of it.
"""

from collections.abc import Callable, Mapping
from typing import Final

from sqlalchemy import Connection, TextClause, text
from sqlalchemy.exc import DBAPIError

from walstream.sources.sql.database.sequence import DRAWN, asked
from walstream.sources.sql.database.shape import SqlTableShape

_POSTGRES: Final = text(f"""
{DRAWN}
SELECT s.seqrelid::regclass::text, s.seqrelid::text, pg_relation_filenode(s.seqrelid),
  concat_ws('/', s.seqtypid, s.seqstart, s.seqincrement, s.seqmin, s.seqmax,
    s.seqcache, s.seqcycle),
  has_sequence_privilege(s.seqrelid, 'SELECT') AND s.seqincrement > 0
FROM pg_sequence s JOIN drawn d ON d.oid = s.seqrelid
""")  # noqa: S608 - two constants
_MYSQL: Final = text("""
SELECT t.auto_increment FROM information_schema.tables t
JOIN information_schema.columns c USING (table_schema, table_name)
WHERE table_name = :name AND c.column_name = :key AND c.extra LIKE '%auto_increment%'
  AND table_schema = CASE :schema WHEN '' THEN DATABASE() ELSE :schema END
""")
_UNKNOWN_VARIABLE: Final = 1193
_MYSQL_FRESH: Final = "SET SESSION information_schema_stats_expiry = 0"
_REPLICA: Final[Mapping[str, TextClause]] = {
    "postgresql": text("SELECT pg_is_in_recovery()"),
    "mysql": text("SELECT @@read_only + @@innodb_read_only > 0"),
    "mariadb": text("SELECT @@read_only + @@innodb_read_only > 0"),
}
_SQLITE_COUNTS: Final = text(
    "SELECT count(*) FROM sqlite_master WHERE name = 'sqlite_sequence'"
)
_SQLITE: Final = text("""
SELECT seq + 1 FROM sqlite_sequence WHERE name = :name
  AND EXISTS (SELECT * FROM pragma_table_info(:name) WHERE name = :key AND pk = 1)
""")


def next_key(connection: Connection, shape: SqlTableShape) -> int | None:
    """Return the least key that the engine gives next; None: it is not known."""
    ask = _NEXT.get(connection.dialect.name)
    if ask is None:
        return None
    return ask(connection, shape)


def is_replica(connection: Connection) -> bool:
    """Return whether the server may be behind another one."""
    asked = _REPLICA.get(connection.dialect.name)
    if asked is None:
        return False
    with connection.begin():
        return bool(connection.execute(asked).scalar())


def origin(connection: Connection, shape: SqlTableShape) -> str:
    """Name the sequence that gives the keys: itself, its file, its settings.

    "" where there is none, or several, or the engine has no such thing.
    """
    if connection.dialect.name != "postgresql":
        return ""
    sequences = _sequences(connection, shape)
    if len(sequences) != 1:
        return ""
    _, oid, file, settings, _ = sequences[0]
    return f"{oid} {file} {settings}"


def _sequences(
    connection: Connection, shape: SqlTableShape
) -> list[tuple[str, str, int, str, bool]]:
    with connection.begin():
        rows = connection.execute(_POSTGRES, asked(shape)).all()
    return [(row[0], row[1], row[2], row[3], row[4]) for row in rows]


def _of_postgres(connection: Connection, shape: SqlTableShape) -> int | None:
    sequences = _sequences(connection, shape)
    if len(sequences) != 1 or not sequences[0][4]:
        return None
    # as the server itself quotes it
    asked = text(f"SELECT last_value, is_called FROM {sequences[0][0]}")  # noqa: S608
    with connection.begin():
        last, is_called = connection.execute(asked).one()
    return int(last) + int(is_called)


def _of_mysql(connection: Connection, shape: SqlTableShape) -> int | None:
    if not getattr(connection.dialect, "is_mariadb", False):
        try:  # MySQL 8 would show what it was a day ago
            with connection.begin():
                connection.exec_driver_sql(_MYSQL_FRESH)
        except DBAPIError as error:
            if error.orig is None or _UNKNOWN_VARIABLE not in error.orig.args:
                raise  # but that of an older one
    with connection.begin():
        found = connection.execute(_MYSQL, asked(shape)).scalar()
    return None if found is None else int(found)


def _of_sqlite(connection: Connection, shape: SqlTableShape) -> int | None:
    with connection.begin():
        if not connection.execute(_SQLITE_COUNTS).scalar():
            return None
        found = connection.execute(_SQLITE, asked(shape)).scalar()
    return None if found is None else int(found)


_NEXT: Final[Mapping[str, Callable[[Connection, SqlTableShape], int | None]]] = {
    "postgresql": _of_postgres,
    "mysql": _of_mysql,
    "mariadb": _of_mysql,
    "sqlite": _of_sqlite,
}
