"""What the catalog says of tables now: kind, replica identity, primary key.

Never of rows in the WAL: their columns come from the stream's Relation messages.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import sql

from walstream.errors import Transient
from walstream.lsn import Lsn, parse
from walstream.postgres.connection import Connection, session
from walstream.row import Value

# A partition root is as its leaves are: an UPDATE checks the leaf's identity, and the
# old row is logged as the leaf's identity says. A deferrable primary key identifies
# no row (RelationGetIndexList in relcache.c), and what an index only includes (behind
# the first indnkeyatts) neither. From pg_inherits, since pg_partition_tree locks every
# leaf.
_TABLES: Final = """
WITH RECURSIVE tree AS (
  SELECT c.oid AS root, c.oid AS member FROM pg_class c
  WHERE c.relkind = 'p' AND NOT c.relispartition
  UNION ALL
  SELECT tree.root, i.inhrelid FROM tree
  JOIN pg_inherits i ON i.inhparent = tree.member
  JOIN pg_class p ON p.oid = i.inhparent AND p.relkind = 'p'
), wanted AS (
  SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema'
    AND n.nspname !~ '^pg_'
    AND (%(schema)s::text IS NULL OR (n.nspname, c.relname) = (%(schema)s, %(name)s))
), one AS MATERIALIZED (
  SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident,
    c.relispartition,
    ARRAY(SELECT a.attname::text FROM pg_index i, pg_attribute a
      WHERE i.indrelid = c.oid AND i.indisprimary AND i.indisvalid
        AND a.attrelid = c.oid
        AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
      ORDER BY a.attnum) AS primary_key,
    (SELECT i.indimmediate FROM pg_index i
      WHERE i.indrelid = c.oid AND i.indisprimary AND i.indisvalid) AS key_immediate,
    ARRAY(SELECT a.attname::text FROM pg_index i, pg_attribute a
      WHERE i.indrelid = c.oid AND i.indisvalid AND i.indimmediate
        AND (c.relreplident = 'd' AND i.indisprimary
          OR c.relreplident = 'i' AND i.indisreplident)
        AND a.attrelid = c.oid
        AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
      ORDER BY a.attnum) AS identity,
    ARRAY(SELECT a.attname::text FROM pg_attribute a
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      ORDER BY a.attnum) AS columns,
    ARRAY(SELECT a.attname::text FROM pg_attribute a
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        AND a.attnotnull) AS not_null
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.oid IN (SELECT oid FROM wanted UNION ALL
    SELECT tree.member FROM tree JOIN wanted ON wanted.oid = tree.root)
), leaves AS (
  SELECT tree.root, bool_and(one.relreplident = 'f') AS leaves_full,
    bool_and(one.relreplident = 'f' OR cardinality(one.identity) > 0) AS identified
  FROM tree JOIN one ON one.oid = tree.member
  WHERE one.relkind = 'r'
  GROUP BY tree.root
)
SELECT one.nspname, one.relname, one.relkind, one.relpersistence, one.relreplident,
  one.primary_key, one.identity, one.columns, one.not_null,
  root_schema.nspname || '.' || root.relname,
  coalesce(leaves.leaves_full, true), coalesce(leaves.identified, true),
  coalesce(one.key_immediate, true)
FROM one
LEFT JOIN leaves ON leaves.root = one.oid
LEFT JOIN tree ON tree.member = one.oid AND one.relispartition
LEFT JOIN pg_class root ON root.oid = tree.root
LEFT JOIN pg_namespace root_schema ON root_schema.oid = root.relnamespace
ORDER BY one.nspname, one.relname
"""


# An untyped literal takes the column's type, and with it its index. An extension's
# operator may be out of sight: then by text, as slow as a table's length.
_EQUAL: Final = (sql.SQL("{} = {}"), sql.SQL("pg_catalog.format('%s', {}) = {}"))
_VISIBLE_S: Final = 5.0
_LOOK_EVERY_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class TableFacts:
    """One table, as the catalog has it now."""

    schema: str
    name: str
    kind: str  # r ordinary, p partition root or branch
    persistence: str  # p permanent, u unlogged, t temporary
    replica_identity: str  # d, n, f, i
    primary_key: tuple[str, ...]
    identity: tuple[str, ...]  # columns that an old row carries, unless it is FULL
    columns: tuple[str, ...]
    not_null: frozenset[str]
    root: str | None  # of a partition: its topmost table, `schema.table`
    leaves_full: bool  # is every leaf under REPLICA IDENTITY FULL? true without leaves
    leaves_identified: bool  # may every leaf be updated while published?
    key_immediate: bool = True  # may the primary key, if there is one, identify rows?

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def full(self) -> bool:
        return self.replica_identity == "f"

    @property
    def identified(self) -> bool:
        """Tell whether rows may be updated while updates are published."""
        if self.kind == "p":
            return self.leaves_identified and (self.full or bool(self.identity))
        return self.full or bool(self.identity)

    @property
    def old_rows_whole(self) -> bool:
        """Tell whether a null in an old row that is marked whole is one."""
        return self.leaves_full


def tables(
    connection: Connection, only: tuple[str, str] | None = None
) -> dict[str, TableFacts]:
    """Look at every table that is not the system's, by `schema.table`.

    `only` narrows it to one table, and to its partitions.
    """
    schema, name = only or (None, None)
    rows = connection.execute(_TABLES, {"schema": schema, "name": name}).fetchall()
    facts = [
        TableFacts(
            schema=row[0],
            name=row[1],
            kind=row[2],
            persistence=row[3],
            replica_identity=row[4],
            primary_key=tuple(row[5]),
            identity=tuple(row[6]),
            columns=tuple(row[7]),
            not_null=frozenset(row[8]),
            root=row[9],
            leaves_full=row[10],
            leaves_identified=row[11],
            key_immediate=row[12],
        )
        for row in rows
    ]
    return {table.full_name: table for table in facts}


def flush_lsn(connection: Connection) -> Lsn:
    """How far the server's WAL is on disk: no transaction was streamed beyond it."""
    row = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
    return parse(row[0]) if row else 0


def look_up(
    dsn: str, table: tuple[str, str], *, xid: int
) -> tuple[TableFacts | None, Lsn]:
    """Look at one table as of transaction `xid` or later, and at the flush LSN."""
    with session(dsn) as connection:
        _wait_until_visible(connection, xid)
        found = tables(connection, table)
        return found.get(".".join(table)), flush_lsn(connection)


def read_columns(
    dsn: str,
    table: tuple[str, str],
    key: Mapping[str, Value],
    wanted: Sequence[str],
    *,
    xid: int,
) -> list[str | None] | None:
    """Read some columns of the row of that key, as text; None: no such row now.

    The row is looked for as of transaction `xid` or later. Values come as the stream
    prints them: a cast to text would take the padding off character(n).
    """
    with session(dsn) as connection:
        _wait_until_visible(connection, xid)
        for equal in _EQUAL:
            query = sql.SQL("SELECT {} FROM {} WHERE {}").format(
                sql.SQL(", ").join(sql.Identifier(name) for name in wanted),
                sql.Identifier(*table),
                sql.SQL(" AND ").join(
                    equal.format(sql.Identifier(name), sql.Literal(text))
                    for name, text in key.items()
                ),
            )
            try:
                result = connection.execute(query).pgresult
                break
            except psycopg.errors.UndefinedFunction:
                result = None
    if result is None or not result.ntuples:
        return None
    values = (result.get_value(0, index) for index in range(len(wanted)))
    return [None if value is None else value.decode() for value in values]


def _wait_until_visible(connection: Connection, xid: int) -> None:
    """Wait for a transaction that was streamed already to be visible to others too.

    Its commit is in the WAL before that, and with synchronous replication long before;
    the lock on its own number is the last that it lets go.
    """
    deadline = time.monotonic() + _VISIBLE_S
    running = (
        "SELECT FROM pg_locks WHERE locktype = 'transactionid'"
        " AND transactionid = %s::xid"
    )
    while connection.execute(running, (str(xid),)).fetchone() is not None:
        if time.monotonic() > deadline:
            raise Transient(
                f"transaction {xid} was streamed, but is not visible yet",
                hint="does it wait for a synchronous standby? walstream tries again",
            )
        time.sleep(_LOOK_EVERY_S)
