"""Catalog of tables: kind, replica identity, primary key, as of now.

Never of rows in the WAL: their columns come from the stream's Relation messages.
"""

from dataclasses import dataclass
from typing import Final

from walstream.errors import RETRIED, Transient
from walstream.lsn import Lsn, parse
from walstream.postgres.connection import Connection
from walstream.telemetry import runtime

HOLDS_NO_NULL: Final = """
a.attnotnull AND NOT EXISTS (SELECT FROM pg_constraint v WHERE v.conrelid = a.attrelid
  AND v.contype = 'n' AND v.conkey = ARRAY[a.attnum] AND NOT v.convalidated)
"""
"""Whether a column `a` of pg_attribute holds no null in any row.

Since 18 a constraint may be NOT VALID: rows from before it may hold one.
"""

# A partition root is as its leaves are: an UPDATE checks the leaf's identity, and the
# old row is logged as the leaf's identity says. A deferrable primary key identifies
# no row (RelationGetIndexList in relcache.c), and what an index only includes (behind
# the first indnkeyatts) neither. From pg_inherits, since pg_partition_tree locks every
# leaf.
_TABLES: Final = f"""
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
    AND (%(oid)s::oid IS NULL OR c.oid = %(oid)s)
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
    ARRAY(SELECT CASE WHEN a.attgenerated = '' THEN a.attnum ELSE 0 END
      FROM pg_attribute a
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      ORDER BY a.attnum) AS numbers,
    ARRAY(SELECT a.attname::text FROM pg_attribute a
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        AND {HOLDS_NO_NULL}) AS not_null,
    EXISTS (SELECT FROM pg_index i, pg_attribute a
      WHERE i.indrelid = c.oid AND i.indisprimary AND a.attrelid = c.oid
        AND a.attnum = ANY (i.indkey::int2[]) AND a.attgenerated <> '') AS generated,
    (SELECT max(a.attgenerated::text) FROM pg_attribute a
      WHERE a.attrelid = c.oid AND a.attgenerated <> '' AND NOT a.attisdropped
        AND current_setting('server_version_num')::int >= 180000
        AND (c.relreplident = 'f' OR EXISTS (SELECT FROM pg_index i
          WHERE i.indrelid = c.oid AND i.indisvalid
            AND (c.relreplident = 'd' AND i.indisprimary
              OR c.relreplident = 'i' AND i.indisreplident)
            AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])))) AS computed
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.oid IN (SELECT oid FROM wanted UNION ALL
    SELECT tree.member FROM tree JOIN wanted ON wanted.oid = tree.root)
), leaves AS (
  SELECT tree.root, bool_and(one.relreplident = 'f') AS leaves_full,
    bool_and(one.relreplident = 'f' OR cardinality(one.identity) > 0) AS identified,
    max(one.computed) AS computed
  FROM tree JOIN one ON one.oid = tree.member
  WHERE one.relkind = 'r'
  GROUP BY tree.root
), listed AS (
  SELECT r.prrelid AS root, ARRAY(SELECT a.attname::text FROM pg_attribute a
    WHERE a.attrelid = r.prrelid AND a.attnum = ANY (r.prattrs::int2[])) AS columns
  FROM pg_publication_rel r WHERE r.prattrs IS NOT NULL
), lacking AS (
  SELECT DISTINCT one.oid FROM listed
  JOIN (SELECT oid AS root, oid AS member FROM one
    UNION SELECT root, member FROM tree) AS every USING (root)
  JOIN one ON one.oid = every.member
  WHERE NOT one.primary_key <@ listed.columns
)
SELECT one.nspname, one.relname, one.relkind, one.relpersistence, one.relreplident,
  one.primary_key, one.identity, one.columns, one.not_null,
  root_schema.nspname || '.' || root.relname,
  coalesce(leaves.leaves_full, true), coalesce(leaves.identified, true),
  coalesce(one.key_immediate, true), one.oid::bigint,
  one.generated OR lacking.oid IS NOT NULL, one.numbers,
  coalesce(greatest(one.computed, leaves.computed), '')
FROM one
LEFT JOIN leaves ON leaves.root = one.oid
LEFT JOIN lacking ON lacking.oid = one.oid
LEFT JOIN tree ON tree.member = one.oid AND one.relispartition
LEFT JOIN pg_class root ON root.oid = tree.root
LEFT JOIN pg_namespace root_schema ON root_schema.oid = root.relnamespace
ORDER BY one.nspname, one.relname
"""  # noqa: S608 - of a constant


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
    oid: int = 0
    partial: bool = False  # may rows lack a key's columns: generated, not in a list?
    numbers: tuple[int, ...] = ()  # of its columns; 0: generated
    # of generated columns in an identity, which 18 and later publish no UPDATE without:
    # s stored, v also virtual ones, which it never publishes; "": there is none
    computed: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def full(self) -> bool:
        return self.replica_identity == "f"

    @property
    def identified(self) -> bool:
        """Return whether rows may be updated while updates are published."""
        if self.kind == "p":
            return self.leaves_identified and (self.full or bool(self.identity))
        return self.full or bool(self.identity)

    @property
    def old_rows_whole(self) -> bool:
        """Return whether a null in an old row that is marked whole is one."""
        return self.leaves_full


def tables(
    connection: Connection,
    only: tuple[str, str] | None = None,
    *,
    oid: int | None = None,
) -> dict[str, TableFacts]:
    """Look at every table that is not the system's, by `schema.table`.

    `only` or `oid` narrow it to one table, and to its partitions.
    """
    schema, name = only or (None, None)
    wanted = {"schema": schema, "name": name, "oid": oid}
    rows = connection.execute(_TABLES, wanted).fetchall()
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
            oid=row[13],
            partial=row[14],
            numbers=tuple(row[15]),
            computed=row[16],
        )
        for row in rows
    ]
    return {table.full_name: table for table in facts}


def end_lsn(connection: Connection) -> Lsn:
    """How far the server's WAL is written: all that anybody saw committed lies below.

    Not how far it is on disk: with synchronous_commit = off a commit is seen before.
    """
    row = connection.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
    return parse(row[0]) if row else 0


def tables_and_end(
    connection: Connection, *, oid: int | None = None
) -> tuple[dict[str, TableFacts], Lsn]:
    """Look at tables, and then at the WAL's end: what was found lies below it."""
    found = tables(connection, oid=oid)
    return found, end_lsn(connection)


@dataclass(frozen=True, slots=True)
class Looked:
    """One table, as it was found."""

    facts: TableFacts | None  # None: it is gone
    after: Lsn  # no transaction was streamed beyond here


def look_up(connection: Connection, oid: int, *, xid: int) -> Looked:
    """Look at one table, whatever its name is, as of transaction `xid` or later."""
    wait_until_visible(connection, xid)
    found, after = tables_and_end(connection, oid=oid)
    facts = next((one for one in found.values() if one.oid == oid), None)
    return Looked(facts, after)


def wait_until_visible(connection: Connection, xid: int) -> None:
    """Wait for a transaction that was streamed already to be visible to others too.

    Its commit is in the WAL before that, and with synchronous replication long before;
    the lock on its own number is the last that it lets go.
    """
    deadline = runtime.monotonic() + _VISIBLE_S
    running = (
        "SELECT FROM pg_locks WHERE locktype = 'transactionid'"
        " AND transactionid = %s::xid"
    )
    while connection.execute(running, (str(xid),)).fetchone() is not None:
        if runtime.monotonic() > deadline:
            raise Transient(
                f"transaction {xid} was streamed, but is not visible yet",
                hint=f"it may wait for a synchronous standby; {RETRIED}",
            )
        runtime.sleep(_LOOK_EVERY_S)
