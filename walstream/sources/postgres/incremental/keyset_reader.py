"""Reads a table in the order of its key, some rows at a time, each time as it is then.

Every call is a short session of its own: nothing stays open that would hold up a
vacuum, or a smart shutdown. Needs no Spark.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import psycopg

from walstream.errors import ConfigError
from walstream.lsn import Lsn, parse
from walstream.op import Table, postgres_time
from walstream.postgres.connection import connect, translate
from walstream.sources.postgres.backfill.chunk import TableRewritten
from walstream.sources.postgres.backfill.condition import blame
from walstream.sources.postgres.backfill.copy_text import rows
from walstream.sources.postgres.backfill.key_order import Keyed, find, statement
from walstream.sources.postgres.backfill.publication_filter import (
    Connection,
    KeyedTable,
)
from walstream.sources.postgres.backfill.reader import (
    SnapshotDatabase,
    copied,
    lock_columns,
    settle,
)
from walstream.sources.postgres.backfill.table import ReadableRelation, look
from walstream.sources.postgres.incremental.chunk import (
    Key,
    KeyChunk,
    Visibility,
)
from walstream.telemetry import runtime

_MOST_BYTES: Final = 16 << 20  # of COPY text held at a time, and one row more
_SEEN: Final = "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text"
_MARK: Final = "SELECT pg_current_xact_id()::text"
_FILES: Final = """
SELECT array_agg(oid::bigint), array_agg(relfilenode::bigint)
FROM pg_class WHERE oid = ANY (%s) AND relkind = 'r'
"""
_SAME: Final = """
SELECT coalesce(to_regclass(format('%%I.%%I', %s::text, %s::text)) = %s::oid, false)
  AND coalesce(bool_and(pg_relation_filenode(oid::oid)::bigint IS NOT DISTINCT FROM
  file), true) FROM unnest(%s::bigint[], %s::bigint[]) AS read (oid, file)
"""
_BLOCKERS: Final = (
    "SELECT pid, usename, extract(epoch FROM now() - xact_start)::int"
    " FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
    " AND pid <> pg_backend_pid() ORDER BY xact_start"
)
_PREPARED: Final = "SELECT gid, owner FROM pg_prepared_xacts ORDER BY prepared"


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a table that are asked for."""

    name: str
    most: int
    where: str


class KeysetReader:
    """Reads what the publications of one stream let through."""

    def __init__(
        self,
        database: SnapshotDatabase,
        publications: Callable[[], Sequence[str]],
        *,
        facts: bool = False,
    ) -> None:
        """With `facts` a table has what a schema needs of the catalog."""
        self._database = database
        self._publications = publications
        self._facts = facts

    @contextmanager
    def _session(self, doing: str) -> Iterator[Connection]:
        connection = connect(self._database.dsn)
        try:
            yield connection
        except psycopg.Error as error:
            raise translate(error, doing) from error
        finally:
            connection.close()

    def mark(self) -> int:
        """Run an empty transaction; return its number, above all assigned ones."""
        with self._session("taking a transaction's number") as connection:
            row: Any = connection.execute(_MARK).fetchone()
            return int(row[0])

    def seen(self, later_s: float) -> Visibility:
        """Return what a snapshot sees, after so long."""
        runtime.sleep(later_s)
        with self._session("asking for a snapshot") as connection:
            return _look_around(connection)[0]

    def blockers(self) -> str:
        """Name the sessions whose transactions run, and the prepared ones."""
        with self._session("listing open transactions") as connection:
            running = connection.execute(_BLOCKERS).fetchall()
            prepared = connection.execute(_PREPARED).fetchall()
        return ", ".join(
            [f"pid {pid} of {user}, {age} s old" for pid, user, age in running]
            + [f"prepared {gid!r} of {owner}" for gid, owner in prepared]
        )

    def table(self, name: str) -> tuple[Table, Lsn]:
        """Look at a table, as its rows will go out, and how far the server is.

        Have the stream come by there soon.
        """
        with self._session(f"looking at table {name!r}") as connection:
            high = _look_around(connection)[1]
            keyed, parts = self._find(connection, name)
            _bring_by(connection)
            return _table(keyed, parts), high

    def read(
        self,
        name: str,
        after: Key | None,
        key: Sequence[str],
        most: int,
        where: str = "",
    ) -> KeyChunk:
        """Read rows behind a key, and have the stream come by soon.

        From the first row on where `key` is no longer what the rows are ordered by.
        `where` is the rows' condition; "": all of them.
        """
        with self._session(f"reading table {name!r}") as connection:
            wish = _Part(name, most, where)
            try:
                chunk, read = self._read(connection, wish, after, tuple(key))
            except psycopg.DataError as error:
                connection.execute("ROLLBACK")
                if after is None or self._fits(connection, wish, after, tuple(key)):
                    blame(error, name, where)
                    raise  # a row's own: from the first one on it would come again
                chunk, read = self._read(connection, wish, None, ())
            except psycopg.ProgrammingError as error:
                blame(error, name, where)
                raise
            same = connection.execute(_SAME, read).fetchone()
            if same != (True,):
                raise TableRewritten(
                    f"table {name!r} was rewritten, truncated or renamed meanwhile"
                )
            _bring_by(connection)
        return chunk

    def _fits(
        self, connection: Connection, wish: "_Part", after: Key, key: tuple[str, ...]
    ) -> bool:
        """Return whether the key's columns can be compared with what was read last."""
        try:
            self._read(connection, replace(wish, most=0), after, key)
        except psycopg.DataError:
            connection.execute("ROLLBACK")
            return False
        return True

    def _read(
        self,
        connection: Connection,
        wish: "_Part",
        after: Key | None,
        key: tuple[str, ...],
    ) -> tuple[KeyChunk, tuple[object, ...]]:
        """Return the rows, and what has to be the same behind them."""
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        settle(connection)
        connection.execute(
            "SET LOCAL lock_timeout = '5s'; SET LOCAL enable_seqscan = off;"
            "SET LOCAL enable_bitmapscan = off"
        )
        seen, high = _look_around(connection)
        keyed, parts = self._find(connection, wish.name, wish.where)
        table = _table(keyed, parts)
        most = wish.most
        oids = [part.relation.oid for part in parts]
        found = connection.execute(_FILES, (oids,)).fetchone()
        files = (found[0] or [], found[1] or []) if found else ([], [])
        place = (keyed.schema, keyed.name, keyed.oid)
        # as an earlier version kept it: which table was read is not known
        if key not in {keyed.key + keyed.order, keyed.key + keyed.order[:-1]}:
            after = None
        read: list[list[str | None]] = []
        size, last = 0, True
        if parts:
            others = parts[0].relation.row_filter  # that the condition has
            lock_columns(connection, place, None if others else table.columns)
            query = statement(keyed, parts[0], after, most)
            for block in copied(connection.pgconn, query.as_bytes(connection)):
                read += rows(block, len(table.columns))
                size += len(block)
                if size >= _MOST_BYTES:
                    _interrupt(connection)
                    last = False
                    break
        connection.execute("ROLLBACK")
        order = tuple(table.columns.index(column) for column in keyed.key if parts)
        last = last and len(read) < most
        now = postgres_time(runtime.time())
        ordered = keyed.order if parts else ()
        chunk = KeyChunk(table, read, order, seen, high, last, size, now, ordered)
        return chunk, (*place, *files)

    def _find(
        self, connection: Connection, name: str, where: str = ""
    ) -> tuple[Keyed, list[ReadableRelation]]:
        """Find a table, its key and what holds its rows; raise what keeps them."""
        keyed = find(connection, name)
        publications = tuple(self._publications())
        wanted = KeyedTable(
            keyed.schema,
            keyed.name,
            keyed.key,
            publications,
            facts=self._facts,
            where=where,
        )
        parts = look(connection, wanted)
        if parts and not set(keyed.key) <= set(parts[0].relation.table.columns):
            raise ConfigError(
                f"the publication's column list leaves out the key of table {name!r}",
                hint="publish the key's columns too",
            )
        return keyed, parts


def _look_around(connection: Connection) -> tuple[Visibility, Lsn]:
    """Return what is seen, and a place behind all of that."""
    row: Any = connection.execute(_SEEN).fetchone()
    return Visibility.of(row[0]), parse(row[1])


def _table(keyed: Keyed, parts: Sequence[ReadableRelation]) -> Table:
    if parts:
        return parts[0].relation.table
    return Table(keyed.schema, keyed.name, ())  # a partition root without partitions


def _interrupt(connection: Connection) -> None:
    """End a COPY early."""
    connection.cancel()
    pgconn = connection.pgconn
    with suppress(psycopg.Error):
        while pgconn.get_copy_data(0)[0] >= 0:
            pass
    while pgconn.get_result() is not None:
        pass


def _bring_by(connection: Connection) -> None:
    """Write a little WAL: an idle server's stream would never pass what was seen."""
    with suppress(psycopg.errors.InsufficientPrivilege):
        connection.execute("SET synchronous_commit = local")  # no standby is waited for
        connection.execute("SELECT pg_logical_emit_message(true, 'walstream', '')")
