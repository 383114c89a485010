"""What is read of a table: its relations, and what the publications let through.

A partition root has no rows: its leaves are read, and their rows go out as the root's.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql

from walstream.column_type import written_as
from walstream.errors import ConfigError, PermissionLacking, Repair
from walstream.op import Table
from walstream.spark.chunk import Relation

Connection = psycopg.Connection[tuple[Any, ...]]

_GENERATED_SENT_FROM: Final = 180000
_TABLE: Final = """
SELECT c.oid::bigint, c.relkind, to_jsonb(ARRAY(SELECT json_build_array(
    a.attname, a.attgenerated <> '', a.atttypid::bigint, named.nspname, named.typname)
  FROM pg_attribute a CROSS JOIN LATERAL (
    WITH RECURSIVE below AS (
      SELECT t.* FROM pg_type t WHERE t.oid = a.atttypid
      UNION ALL
      SELECT t.* FROM below JOIN pg_type t ON t.oid = below.typbasetype
      WHERE below.typtype = 'd'
    ) SELECT s.nspname, below.typname FROM below
    JOIN pg_namespace s ON s.oid = below.typnamespace WHERE below.typtype <> 'd'
  ) AS named
  WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  ORDER BY a.attnum))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p', 'm', 'v', 'f')
"""
_PUBLISHED: Final = """
SELECT t.schemaname, t.tablename, t.attnames::text[], t.rowfilter, p.pubinsert
FROM pg_publication_tables t JOIN pg_publication p ON p.pubname = t.pubname
WHERE t.pubname = ANY (%s) ORDER BY t.pubname
"""
# from pg_inherits, which the snapshot decides; pg_partition_tree shows what is now
_LEAVES: Final = """
WITH RECURSIVE tree AS (
  SELECT %s::oid AS oid
  UNION ALL
  SELECT i.inhrelid FROM tree JOIN pg_class p ON p.oid = tree.oid AND p.relkind = 'p'
  JOIN pg_inherits i ON i.inhparent = tree.oid
)
SELECT c.oid::bigint, n.nspname, c.relname,
  c.relkind IN ('r', 'm') AND am.amname = 'heap',
  coalesce(pg_relation_size(c.oid) / current_setting('block_size')::int, 0)::bigint,
  coalesce(pg_table_size(c.oid), 0)::bigint,
  row_security_active(c.oid),
  c.relkind NOT IN ('v', 'f')
FROM tree JOIN pg_class c ON c.oid = tree.oid AND c.relkind <> 'p'
JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_am am ON am.oid = c.relam
ORDER BY n.nspname, c.relname
"""
_UNREADABLE: Final = """
SELECT current_user, ARRAY(SELECT name FROM unnest(%s::text[]) AS name
  WHERE NOT has_column_privilege(%s::oid, name, 'SELECT'))
"""


_CAPTURED: Final = """
SELECT DISTINCT schemaname || '.' || tablename FROM pg_publication_tables
WHERE pubname = ANY (%s) ORDER BY 1
"""


def published(connection: Connection, publications: Iterable[str]) -> list[str]:
    """Name the tables whose rows go out by these publications, as `schema.table`."""
    rows = connection.execute(_CAPTURED, (list(publications),)).fetchall()
    return [name for (name,) in rows]


_RELATIONS: Final = """
SELECT n.nspname || '.' || c.relname, c.relkind
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'm', 'v', 'f') AND n.nspname <> 'information_schema'
  AND n.nspname !~ '^pg_'
"""


def relations(connection: Connection) -> dict[str, str]:
    """Give the kind (pg_class.relkind) of whatever has rows, by `schema.table`."""
    return dict(connection.execute(_RELATIONS).fetchall())


@dataclass(frozen=True, slots=True)
class Wanted:
    """A table to read, as its stream is keyed."""

    schema: str
    name: str
    key: tuple[str, ...] = ()  # columns of the row key
    publications: tuple[str, ...] = ()  # none: every column, every row
    ranges: tuple[str, ...] = ()  # columns of a unique index, to read by key ranges
    by_key: bool = False  # read by them also where place would do

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Readable:
    """A relation with rows, and how large it is."""

    relation: Relation
    by_place: bool  # can ranges of ctid be scanned?
    pages: int
    size: int  # bytes, with TOAST


class NoSuchTable(ConfigError):
    """The table is not there, or is published no more."""


Through = Mapping[tuple[str, str], Sequence[tuple[Sequence[str], str | None, bool]]]
"""What publications let through of each table: columns, rows, and whether inserts."""


def let_through(connection: Connection, publications: Iterable[str]) -> Through:
    """Ask once for all tables: the view opens each of them, whichever is asked for."""
    found: dict[tuple[str, str], list[tuple[Sequence[str], str | None, bool]]] = {}
    rows = connection.execute(_PUBLISHED, (list(publications),)).fetchall()
    for schema, name, columns, row_filter, inserts in rows:
        found.setdefault((schema, name), []).append((columns, row_filter, inserts))
    return found


def look(
    connection: Connection, wanted: Wanted, through: Through | None = None
) -> list[Readable]:
    """Find the relations that hold a table's rows; raise what keeps them from us."""
    row = connection.execute(_TABLE, (wanted.schema, wanted.name)).fetchone()
    if row is None:
        raise NoSuchTable(f"there is no table {wanted.full_name!r}")
    oid, _, columns = row
    if through is None and wanted.publications:
        through = let_through(connection, wanted.publications)
    names, row_filter = _published(wanted, through or {})
    # the view lists generated columns also where the server never sends them
    sent = connection.info.server_version >= _GENERATED_SENT_FROM
    shown = [
        (name, written_as(*kind))
        for name, generated, *kind in columns
        if names is None or (name in names and (sent or not generated))
    ]
    table = Table(
        wanted.schema,
        wanted.name,
        tuple(name for name, _ in shown),
        tuple(index for index, (name, _) in enumerate(shown) if name in wanted.key),
        tuple(kind for _, kind in shown),
    )
    return [
        _readable(connection, leaf, table, row_filter)
        for leaf in connection.execute(_LEAVES, (oid,)).fetchall()
    ]


def _published(wanted: Wanted, through: Through) -> tuple[Sequence[str] | None, str]:
    """Give the columns that are let through, and the rows, as SQL."""
    if not wanted.publications:
        return None, ""
    rows = through.get((wanted.schema, wanted.name))
    if not rows:
        raise NoSuchTable(
            f"table {wanted.full_name!r} is not in {_list(wanted.publications)}",
            hint="add it to the publication, or to `tables`",
        )
    # a row is sent when one of those that publish inserts lets it through
    filters = [row_filter for _, row_filter, inserts in rows if inserts]
    if not all(filters):
        return rows[0][0], ""
    return rows[0][0], " OR ".join(f"({text})" for text in filters)


def _list(publications: Iterable[str]) -> str:
    return "publication " + " or ".join(map(repr, publications))


def _readable(
    connection: Connection, leaf: tuple[Any, ...], table: Table, row_filter: str
) -> Readable:
    oid, schema, name, heap, pages, size, hidden, alone = leaf
    relation = Relation(schema, name, oid, table, row_filter, alone)
    asked = connection.execute(_UNREADABLE, (list(table.columns), oid)).fetchone()
    role, lacking = asked or ("", [])
    if lacking:
        raise PermissionLacking(
            f"role {role!r} may not read {relation.full_name!r}",
            hint="the table's owner has to grant it",
            repair=Repair(sql=_grant(relation, role)),
        )
    if hidden:
        raise PermissionLacking(
            f"row-level security hides rows of {relation.full_name!r} from {role!r}",
            hint="read as a role that it does not concern",
            repair=Repair(sql=_bypass(role)),
        )
    return Readable(relation, bool(heap), pages, size)


def _grant(relation: Relation, role: str) -> str:
    return (
        sql.SQL("GRANT SELECT ON {} TO {};")
        .format(
            sql.Identifier(relation.schema, relation.name),
            sql.Identifier(role),
        )
        .as_string(None)
    )


def _bypass(role: str) -> str:
    return (
        sql.SQL("ALTER ROLE {} BYPASSRLS;").format(sql.Identifier(role)).as_string(None)
    )
