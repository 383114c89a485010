"""Reads one chunk under a given snapshot, as blocks of COPY text.

Every connection of every attempt imports the snapshot; the table is looked at again in
the same transaction, since an old snapshot reads a truncated table as empty.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Final

import psycopg
from psycopg import pq, sql

from walstream.postgres.connection import connect, translate, without_values
from walstream.sources.postgres.backfill.chunk import (
    Chunk,
    Doubtful,
    KeyRange,
    PageRange,
    SnapshotGone,
    TableRewritten,
    statement,
)
from walstream.spark.outcome import Unreadable

Connection = psycopg.Connection[tuple[Any, ...]]
_TRANSACTION_TIMEOUT_FROM: Final = 170000
_BLOCK_ROWS: Final = 2000
_BLOCK_BYTES: Final = 1 << 20
# A chunk's order has to repeat: nothing may run in parallel, or begin where another
# scan is; and a range of pages is read by its place alone, whatever a filter offers.
_OTHER_SCANS: Final = ("seqscan", "indexscan", "indexonlyscan", "bitmapscan")
_SETTINGS: Final = (
    "SET LOCAL idle_in_transaction_session_timeout = 0;"
    "SET LOCAL statement_timeout = 0;"
    "SET LOCAL lock_timeout = '60s';"
    "SET LOCAL row_security = off;"
    "SET LOCAL max_parallel_workers_per_gather = 0;"
    "SET LOCAL synchronize_seqscans = off;"
    "SET LOCAL jit = off"
)
_GONE: Final = {"42P01", "42703"}  # table, column
_DENIED: Final = "42501"
# PostgreSQL manual, appendix "Error Codes": connections, rollbacks of others' making,
# resources, an operator, locks, time-outs
_PASSING: Final = ("08", "40", "53", "57", "55P03", "55006", "25P03", "25P04")
_DOUBTFUL: Final = ("58", "XX000")  # a disk's, or the server's own
_SNAPSHOT_LOST: Final = {"22023", "42704", "55000"}
_UNCHANGED: Final = (
    "SELECT relfilenode = pg_relation_filenode(oid) FROM pg_class WHERE oid = %s"
)
_STORED: Final = "SELECT relkind IN ('r', 'm') FROM pg_class WHERE oid = %s"
# the snapshot's, with the types as a result has them: those below the domains
_COLUMNS: Final = """
SELECT a.attname::text, a.attnum, (
  WITH RECURSIVE base (oid, below) AS (
    SELECT oid, typbasetype FROM pg_type WHERE oid = a.atttypid
    UNION ALL
    SELECT t.oid, t.typbasetype FROM base JOIN pg_type t ON t.oid = base.below
  ) SELECT oid::bigint FROM base WHERE below = 0)
FROM pg_attribute a WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped
"""
_NAMED: Final = (
    "SELECT coalesce(to_regclass(format('%%I.%%I', %s::text, %s::text))"
    " = %s::oid, false)"
)


@dataclass(frozen=True, slots=True)
class SnapshotDatabase:
    """Database and snapshot to read; picklable."""

    dsn: str = field(repr=False)


@contextmanager
def under_snapshot(database: SnapshotDatabase, snapshot: str) -> Iterator[Connection]:
    """Open a connection that sees the snapshot, for as long as it takes."""
    connection = connect(database.dsn)
    try:
        connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            connection.execute(
                sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot))
            )
        except psycopg.Error as error:
            if error.sqlstate not in _SNAPSHOT_LOST:
                raise
            text = error.diag.message_primary
            raise SnapshotGone(f"snapshot {snapshot!r} is gone: {text}") from None
        settle(connection)
        yield connection
    except psycopg.Error as error:
        raise translate(error, "reading a chunk") from error
    finally:
        connection.close()


def settle(connection: Connection) -> None:
    """Set what a transaction that reads rows has to run under."""
    connection.execute(_SETTINGS)
    if connection.info.server_version >= _TRANSACTION_TIMEOUT_FROM:
        connection.execute("SET LOCAL transaction_timeout = 0")


def blocks(connection: Connection, chunk: Chunk) -> Iterator[bytes]:
    """Read a chunk's rows, some lines at a time; then see that the table is the same.

    Raises TableRewritten where what was read may be too little, and before anything is
    read where it would be other columns.
    """
    if isinstance(chunk.span, PageRange):
        for scan in _OTHER_SCANS:
            connection.execute(f"SET LOCAL enable_{scan} = off".encode())
    query = statement(chunk).as_bytes(connection)
    relation = chunk.relation
    named = (relation.schema, relation.name, relation.oid)
    try:
        lock_columns(
            connection,
            named,
            None if _reads_others(chunk) else relation.table.columns,
        )
        yield from copied(connection.pgconn, query)
    except psycopg.Error as error:
        raise _judged(error, chunk) from error
    # by now, not by the snapshot: what was read is what has the name now
    if connection.execute(_NAMED, named).fetchone() != (True,):
        raise TableRewritten(f"{relation.full_name!r} was renamed meanwhile")
    oid = (relation.oid,)
    stored = connection.execute(_STORED, oid).fetchone()
    if stored == (True,) and connection.execute(_UNCHANGED, oid).fetchone() != (True,):
        raise TableRewritten(
            f"{chunk.relation.full_name!r} was rewritten or truncated meanwhile"
        )


def _reads_others(chunk: Chunk) -> bool:
    """Return whether more columns than those that are sent decide of the rows."""
    return bool(chunk.relation.row_filter) or isinstance(chunk.span, KeyRange)


def lock_columns(
    connection: Connection,
    relation: tuple[str, str, int],
    names: Collection[str] | None = None,
) -> None:
    """Lock a relation until the transaction ends, as reading it does.

    Raises TableRewritten where the schema and name are no longer those of this oid, or
    one of these columns (None: of all) is not the one that the snapshot has: a query
    finds both by their names as they are now. The server describes a query without
    running it: that takes the lock, and no right.
    """
    schema, name, oid = relation
    whole = sql.SQL("SELECT * FROM {}").format(sql.Identifier(schema, name))
    now = _described(connection.pgconn, whole.as_bytes(connection))
    seen = {
        column: (oid, *place)
        for column, *place in connection.execute(_COLUMNS, (oid,)).fetchall()
    }
    asked = seen.keys() if names is None else names
    if any(now.get(column) != seen.get(column) for column in asked):
        raise TableRewritten(
            f"{f'{schema}.{name}'!r} or a column of it was renamed or changed meanwhile"
        )
    if connection.execute(_NAMED, relation).fetchone() != (True,):
        raise TableRewritten(f"{f'{schema}.{name}'!r} was renamed meanwhile")


def _described(pgconn: pq.abc.PGconn, query: bytes) -> dict[str, tuple[int, ...]]:
    """Return a result's columns: of which relation, which of its own, and the type."""
    parsed = pgconn.prepare(b"", query)
    found = parsed
    if parsed.status == pq.ExecStatus.COMMAND_OK:
        found = pgconn.describe_prepared(b"")
    if found.status != pq.ExecStatus.COMMAND_OK:
        raise psycopg.errors.error_from_result(found)
    return {
        (found.fname(at) or b"").decode(): (
            found.ftable(at),
            found.ftablecol(at),
            found.ftype(at),
        )
        for at in range(found.nfields)
    }


def _judged(error: psycopg.Error, chunk: Chunk) -> Exception:
    """Return what is a fault of these rows, and not of the connection or the moment."""
    state = error.sqlstate
    if state is None or state.startswith(_PASSING):
        return error
    text = without_values(error)
    if state in _GONE:
        return TableRewritten(f"{chunk.relation.full_name!r}: {text}")
    text = f"{text} ({state})"
    if state == _DENIED:
        return Unreadable(
            text,
            hint=f"the right to read {chunk.relation.full_name!r} was revoked, or "
            "row-level security hides its rows: grant it, or read as another role",
        )
    return (Doubtful if state.startswith(_DOUBTFUL) else Unreadable)(text)


def copied(pgconn: pq.abc.PGconn, query: bytes) -> Iterator[bytes]:
    """Run a COPY TO STDOUT; give whole lines."""
    result = pgconn.exec_(query)
    if result.status != pq.ExecStatus.COPY_OUT:
        raise psycopg.errors.error_from_result(result)
    more = True
    while more:
        block, more = _block(pgconn)
        if block:
            yield block
    failed = None
    while (ended := pgconn.get_result()) is not None:  # all: the session goes on
        if ended.status != pq.ExecStatus.COMMAND_OK:
            failed = ended
    if failed is not None:
        raise psycopg.errors.error_from_result(failed)


def _block(pgconn: pq.abc.PGconn) -> tuple[bytes, bool]:
    """Receive some lines; tell whether there may be more."""
    receive, block = pgconn.get_copy_data, BytesIO()
    write, room = block.write, _BLOCK_BYTES
    for _ in range(_BLOCK_ROWS):
        length, line = receive(0)
        if length < 0:
            return block.getvalue(), False
        # written at once: a line that is kept costs the collector's visits
        write(line)
        room -= length
        if room <= 0:
            break
    return block.getvalue(), True
