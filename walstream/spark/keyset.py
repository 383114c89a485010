"""Reads a table in the order of its key, some rows at a time, each time as it is then.

Every call is a short session of its own: nothing stays open that would hold up a
vacuum, or a smart shutdown. Needs no Spark.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql

from walstream.beside.chunk import Chunk, Key
from walstream.beside.visibility import Visibility
from walstream.errors import ConfigError
from walstream.lsn import Lsn, parse
from walstream.op import Table
from walstream.spark.chunk import TableRewritten
from walstream.spark.copy_text import rows
from walstream.spark.reader import Database, copied, settle
from walstream.spark.table import Readable, look
from walstream.spark.through import Connection, Wanted

_MOST_BYTES: Final = 16 << 20  # of COPY text held at a time, and one row more
_POSTGRES_EPOCH: Final = 946_684_800
_SEEN: Final = "SELECT pg_current_snapshot()::text, pg_current_wal_insert_lsn()::text"
_MARK: Final = "SELECT pg_current_xact_id()::text"
# The index whose columns identify a row in the stream, in the order it is searched by.
_KEY: Final = """
SELECT n.nspname, c.relname, ARRAY(
    SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
    WHERE place <= i.indnkeyatts ORDER BY place),
  to_jsonb(ARRAY(
    SELECT CASE WHEN i.indcollation[place - 1] NOT IN (0, a.attcollation) THEN
      (SELECT json_build_array(s.nspname, l.collname) FROM pg_collation l
       JOIN pg_namespace s ON s.oid = l.collnamespace
       WHERE l.oid = i.indcollation[place - 1]) END
    FROM unnest(i.indkey) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
    WHERE place <= i.indnkeyatts ORDER BY place)),
  ARRAY(SELECT DISTINCT s.nspname::text FROM unnest(i.indclass) AS class
    JOIN pg_opclass o ON o.oid = class JOIN pg_amop m ON m.amopfamily = o.opcfamily
    JOIN pg_operator r ON r.oid = m.amopopr
    JOIN pg_namespace s ON s.oid = r.oprnamespace
    WHERE s.nspname <> ALL (current_schemas(true))),
  ARRAY(
    SELECT concat_ws(' ', a.attnum, a.atttypid, i.indclass[place - 1],
      i.indcollation[place - 1],
      pg_collation_actual_version(nullif(i.indcollation[place - 1], 0)))
    FROM unnest(i.indkey) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
    WHERE place <= i.indnkeyatts ORDER BY place)
FROM unnest(%s::text[], %s::text[]) AS wanted (schema, name)
JOIN pg_namespace n ON n.nspname = wanted.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisvalid
  AND CASE c.relreplident WHEN 'i' THEN i.indisreplident AND i.indimmediate
    WHEN 'd' THEN i.indisprimary AND i.indimmediate
    WHEN 'f' THEN i.indisprimary ELSE false END
WHERE c.relkind IN ('r', 'p')
"""
# of a role or database, a path that does not lead to the key's own operators
_PATH: Final = (
    "SELECT set_config('search_path', current_setting('search_path') || ', ' ||"
    " (SELECT string_agg(quote_ident(name), ', ') FROM unnest(%s::text[]) AS name),"
    " true)"
)
_FILES: Final = """
SELECT array_agg(oid::bigint), array_agg(relfilenode::bigint)
FROM pg_class WHERE oid = ANY (%s) AND relkind = 'r'
"""
_SAME_FILES: Final = """
SELECT coalesce(bool_and(pg_relation_filenode(oid::oid)::bigint IS NOT DISTINCT FROM
  file), true) FROM unnest(%s::bigint[], %s::bigint[]) AS read (oid, file)
"""
_BLOCKERS: Final = (
    "SELECT pid, usename, extract(epoch FROM now() - xact_start)::int"
    " FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
    " AND pid <> pg_backend_pid() ORDER BY xact_start"
)
_PREPARED: Final = "SELECT gid, owner FROM pg_prepared_xacts ORDER BY prepared"


@dataclass(frozen=True, slots=True)
class _Keyed:
    """A table and its key."""

    schema: str
    name: str
    key: tuple[str, ...]  # the row key, in the index's order
    collations: tuple[tuple[str, str] | None, ...]  # where not the columns' own
    order: tuple[str, ...]  # what decides of two of its values which is first


class KeysetReader:
    """Reads what the publications of one stream let through."""

    def __init__(
        self, database: Database, publications: Callable[[], Sequence[str]]
    ) -> None:
        self._database = database
        self._publications = publications

    @contextmanager
    def _session(self, doing: str) -> Iterator[Connection]:
        connection = self._database.connect(self._database.dsn)
        try:
            yield connection
        except psycopg.Error as error:
            raise self._database.translate(error, doing) from error
        finally:
            connection.close()

    def mark(self) -> int:
        """End a transaction of one's own; give its number, above all that have one."""
        with self._session("taking a transaction's number") as connection:
            row: Any = connection.execute(_MARK).fetchone()
            return int(row[0])

    def seen(self, later_s: float) -> Visibility:
        """Give what a snapshot sees, after so long."""
        time.sleep(later_s)
        with self._session("asking for a snapshot") as connection:
            return _look_around(connection)[0]

    def blockers(self) -> str:
        """Name the sessions whose transactions run, and the prepared ones."""
        with self._session("asking who runs") as connection:
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
        self, name: str, after: Key | None, key: Sequence[str], most: int
    ) -> Chunk:
        """Read rows behind a key, and have the stream come by soon.

        From the first row on where `key` is no longer what the rows are ordered by.
        """
        with self._session(f"reading table {name!r}") as connection:
            try:
                chunk, files = self._read(connection, name, after, tuple(key), most)
            except psycopg.DataError:  # the columns have other types now
                if after is None:
                    raise
                connection.execute("ROLLBACK")
                chunk, files = self._read(connection, name, None, (), most)
            same = connection.execute(_SAME_FILES, files).fetchone()
            if same != (True,):
                raise TableRewritten(
                    f"table {name!r} was rewritten or truncated meanwhile"
                )
            _bring_by(connection)
        return chunk

    def _read(
        self,
        connection: Connection,
        name: str,
        after: Key | None,
        key: tuple[str, ...],
        most: int,
    ) -> tuple[Chunk, tuple[list[int], list[int]]]:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        settle(connection)
        connection.execute(
            "SET LOCAL lock_timeout = '5s'; SET LOCAL enable_seqscan = off;"
            "SET LOCAL enable_bitmapscan = off"
        )
        seen, high = _look_around(connection)
        keyed, parts = self._find(connection, name)
        table = _table(keyed, parts)
        oids = [part.relation.oid for part in parts]
        found = connection.execute(_FILES, (oids,)).fetchone()
        files = (found[0] or [], found[1] or []) if found else ([], [])
        if keyed.key + keyed.order != key:
            after = None
        read: list[list[str | None]] = []
        size, last = 0, True
        if parts:
            query = _statement(keyed, parts[0], after, most)
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
        now = int((time.time() - _POSTGRES_EPOCH) * 1_000_000)
        ordered = keyed.order if parts else ()
        return Chunk(table, read, order, seen, high, last, size, now, ordered), files

    def _find(self, connection: Connection, name: str) -> tuple[_Keyed, list[Readable]]:
        """Find a table, its key and what holds its rows; raise what keeps them."""
        row = connection.execute(_KEY, _places(name)).fetchone()
        if row is None:
            raise ConfigError(f"there is no table {name!r}")
        schema, bare, key, collations, outside, order = row
        if not key:
            raise ConfigError(
                f"table {name!r} has no row key: its old rows cannot come in beside"
                " the stream",
                hint="give it a primary key or a replica identity; or let a new start"
                " bring all rows: walstream positions reset SOURCE, then run",
            )
        if outside:
            connection.execute(_PATH, (outside,))  # in a transaction alone
        publications = tuple(self._publications())
        wanted = Wanted(schema, bare, tuple(key), publications)
        keyed = _Keyed(
            schema,
            bare,
            tuple(key),
            tuple(tuple(one) if one else None for one in collations),
            tuple(order),
        )
        parts = look(connection, wanted)
        if parts and not set(key) <= set(parts[0].relation.table.columns):
            raise ConfigError(
                f"the publication's column list leaves out the key of table {name!r}",
                hint="publish the key's columns, too",
            )
        return keyed, parts


def _places(name: str) -> tuple[list[str], list[str]]:
    """Give the schemas and names that `schema.table` may mean: either may have dots.

    To be looked up: every table's name would be put together else.
    """
    parts = name.split(".")
    cuts = range(1, len(parts))
    return [".".join(parts[:n]) for n in cuts], [".".join(parts[n:]) for n in cuts]


def _look_around(connection: Connection) -> tuple[Visibility, Lsn]:
    """Tell what is seen, and a place behind all of that."""
    row: Any = connection.execute(_SEEN).fetchone()
    return Visibility.of(row[0]), parse(row[1])


def _table(keyed: _Keyed, parts: Sequence[Readable]) -> Table:
    if parts:
        return parts[0].relation.table
    return Table(keyed.schema, keyed.name, ())  # a partition root without partitions


def _statement(
    keyed: _Keyed, part: Readable, after: Key | None, most: int
) -> sql.Composed:
    """Write the COPY of some rows behind a key; of a root, with its leaves."""
    relation = part.relation
    alone = (relation.schema, relation.name) == (keyed.schema, keyed.name)
    key = [
        sql.Identifier(column)
        if collation is None
        else sql.SQL("{} COLLATE {}").format(
            sql.Identifier(column), sql.Identifier(*collation)
        )
        for column, collation in zip(keyed.key, keyed.collations, strict=True)
    ]
    listed = sql.SQL(", ").join(key)
    wanted: list[sql.Composable] = []
    if after is not None:
        bound = sql.SQL(", ").join(map(sql.Literal, after))
        wanted.append(sql.SQL("({}) > ({})").format(listed, bound))
    if relation.row_filter:
        # as the server itself printed it
        wanted.append(sql.SQL("({})").format(sql.SQL(relation.row_filter)))
    return sql.SQL(
        "COPY (SELECT {} FROM {}{}{} ORDER BY {} LIMIT {}) TO STDOUT"
    ).format(
        sql.SQL(", ").join(map(sql.Identifier, relation.table.columns)),
        sql.SQL("ONLY " if alone else ""),
        sql.Identifier(keyed.schema, keyed.name),
        sql.SQL(" WHERE ") + sql.SQL(" AND ").join(wanted) if wanted else sql.SQL(""),
        listed,
        sql.Literal(most),
    )


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
