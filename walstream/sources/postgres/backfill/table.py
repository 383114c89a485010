"""Tables to read: their relations, and what the publications let through.

A partition root has no rows: its leaves are read, and their rows go out as the root's.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from psycopg import sql

from walstream.config.condition import both
from walstream.errors import ConfigError, PermissionLacking, Repair, WalstreamError
from walstream.formats.column_type import written_as
from walstream.op import Table
from walstream.pipeline.pgoutput import Column
from walstream.postgres import column_facts
from walstream.sources.postgres.backfill.chunk import ChunkRelation
from walstream.sources.postgres.backfill.publication_filter import (
    Connection,
    KeyedTable,
    NoSuchTable,
    Through,
    let_through_of,
    what_is_let_through,
)

_AT_ONCE: Final = 500  # tables that are looked at with one query
_GENERATED_SENT_FROM: Final = 180000
_TABLES: Final = """
SELECT n.nspname, c.relname, c.oid::bigint, to_jsonb(ARRAY(SELECT json_build_array(
    a.attname, a.attgenerated <> '', a.atttypid::bigint, named.nspname, named.typname,
    a.atttypmod)
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
FROM unnest(%s::text[], %s::text[]) AS wanted (schema, name)
JOIN pg_namespace n ON n.nspname = wanted.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name
WHERE c.relkind IN ('r', 'p', 'm', 'v', 'f')
"""
# from pg_inherits, which the snapshot decides; pg_partition_tree shows what is now
_LEAVES: Final = """
WITH RECURSIVE tree AS (
  SELECT root, root AS oid FROM unnest(%s::oid[]) AS root
  UNION ALL
  SELECT tree.root, i.inhrelid FROM tree
  JOIN pg_class p ON p.oid = tree.oid AND p.relkind = 'p'
  JOIN pg_inherits i ON i.inhparent = tree.oid
)
SELECT tree.root::bigint, c.oid::bigint, n.nspname, c.relname,
  c.relkind IN ('r', 'm') AND am.amname = 'heap',
  coalesce(pg_relation_size(c.oid) / current_setting('block_size')::int, 0)::bigint,
  coalesce(pg_table_size(c.oid), 0)::bigint,
  row_security_active(c.oid),
  c.relkind NOT IN ('v', 'f'),
  coalesce(has_table_privilege(c.oid, 'SELECT'), false)
FROM tree JOIN pg_class c ON c.oid = tree.oid AND c.relkind <> 'p'
JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_am am ON am.oid = c.relam
ORDER BY n.nspname, c.relname
"""
# of what is not granted whole
_UNREADABLE: Final = """
SELECT current_user, ARRAY(SELECT DISTINCT oid::bigint
  FROM unnest(%s::oid[], %s::text[]) AS asked (oid, name)
  WHERE NOT has_column_privilege(oid, name, 'SELECT'))
"""


_RELATIONS: Final = """
SELECT n.nspname || '.' || c.relname, c.relkind
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'm', 'v', 'f') AND n.nspname <> 'information_schema'
  AND n.nspname !~ '^pg_'
"""


def relations(connection: Connection) -> dict[str, str]:
    """Return the kind (pg_class.relkind) of whatever has rows, by `schema.table`."""
    return dict(connection.execute(_RELATIONS).fetchall())


@dataclass(frozen=True, slots=True)
class ReadableRelation:
    """A relation with rows, and how large it is."""

    relation: ChunkRelation
    by_place: bool  # can ranges of ctid be scanned?
    pages: int
    size: int  # bytes, with TOAST


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A relation with rows, as the catalog has it."""

    oid: int
    schema: str
    name: str
    heap: bool | None
    pages: int
    size: int
    hidden: bool  # some of its rows, from this role
    alone: bool
    granted: bool  # whole


_Found = tuple[int, Sequence[Any]]  # oid, columns


def look(
    connection: Connection, wanted: KeyedTable, through: Through | None = None
) -> list[ReadableRelation]:
    """Find the relations that hold a table's rows; raise what keeps them from us."""
    (found,) = look_at_all(connection, [wanted], through)
    if isinstance(found, WalstreamError):
        raise found
    return found


def look_at_each(
    connection: Connection, wanted: Iterable[KeyedTable], through: Through | None = None
) -> Iterator[tuple[KeyedTable, list[ReadableRelation] | WalstreamError]]:
    """Find those of ever so many tables, as they are taken, some at a time."""
    left = iter(wanted)
    while some := list(islice(left, _AT_ONCE)):
        yield from zip(some, look_at_all(connection, some, through), strict=True)


def look_at_all(
    connection: Connection, wanted: Sequence[KeyedTable], through: Through | None = None
) -> list[list[ReadableRelation] | WalstreamError]:
    """Find those of many tables, each with its relations or what keeps them from us.

    The queries are as many as for one.
    """
    if through is None:
        through = let_through_of(connection, wanted)
    places = [one.schema for one in wanted], [one.name for one in wanted]
    rows = connection.execute(_TABLES, places).fetchall()
    # the view lists generated columns also where the server never sends them
    sent = connection.info.server_version >= _GENERATED_SENT_FROM
    there = {(schema, name): (oid, columns) for schema, name, oid, columns in rows}
    leaves: dict[int, list[_Leaf]] = {oid: [] for _, _, oid, _ in rows}
    for root, *leaf in connection.execute(_LEAVES, (list(leaves),)).fetchall():
        leaves[root].append(_Leaf(*leaf))
    parts: list[list[ReadableRelation] | WalstreamError] = []
    for one in wanted:
        try:
            oid, columns = _there(one, there)
            table, row_filter = _sent(one, columns, through, generated=sent)
            if one.facts:
                facts = column_facts.of_columns(
                    connection, oid, _described(columns, table)
                )
                table = replace(table, facts=facts)
            parts.append([_readable(leaf, table, row_filter) for leaf in leaves[oid]])
        except ConfigError as error:
            parts.append(error)
    denied = _denied(
        connection,
        [
            (part, leaf)
            for one, found in zip(wanted, parts, strict=True)
            if not isinstance(found, WalstreamError)
            for part, leaf in zip(
                found, leaves[there[one.schema, one.name][0]], strict=True
            )
        ],
    )
    return [_granted(found, denied) for found in parts]


def _there(wanted: KeyedTable, there: Mapping[tuple[str, str], _Found]) -> _Found:
    found = there.get((wanted.schema, wanted.name))
    if found is None:
        raise NoSuchTable(f"there is no table {wanted.full_name!r}")
    return found


def _sent(
    wanted: KeyedTable, columns: Sequence[Any], through: Through, *, generated: bool
) -> tuple[Table, str]:
    """Return which columns of a table go out, and of which rows."""
    if wanted.where and not wanted.key:
        raise ConfigError(
            f"table {wanted.full_name!r} has no row key: a part of it cannot be read",
            hint="after an interruption readers would have to empty the table, and "
            "the other rows would not come again: backfill all of it, or give it a key",
        )
    names, row_filter = what_is_let_through(wanted, through)
    row_filter = both(row_filter, wanted.where)
    shown = [
        (name, written_as(*kind), modifier)
        for name, computed, *kind, modifier in columns
        if names is None or (name in names and (generated or not computed))
    ]
    table = Table(
        wanted.schema,
        wanted.name,
        tuple(name for name, _, _ in shown),
        tuple(index for index, (name, *_) in enumerate(shown) if name in wanted.key),
        tuple(kind for _, kind, _ in shown),
        modifiers=tuple(modifier for _, _, modifier in shown),
    )
    return table, row_filter


def _described(columns: Sequence[Any], table: Table) -> list[Column]:
    """Return a table's columns as the stream describes them, in its order."""
    found = {
        name: Column(is_key=False, name=name, type_oid=oid, type_modifier=modifier)
        for name, _, oid, _, _, modifier in columns
    }
    return [found[name] for name in table.columns]


def _readable(leaf: _Leaf, table: Table, row_filter: str) -> ReadableRelation:
    relation = ChunkRelation(
        leaf.schema, leaf.name, leaf.oid, table, row_filter, leaf.alone
    )
    return ReadableRelation(relation, bool(leaf.heap), leaf.pages, leaf.size)


def _denied(
    connection: Connection, parts: Sequence[tuple[ReadableRelation, _Leaf]]
) -> dict[int, PermissionLacking]:
    """Find what may not be read, by oid."""
    doubtful = [part.relation for part, leaf in parts if not leaf.granted]
    hidden = [part.relation for part, leaf in parts if leaf.hidden]
    if not doubtful and not hidden:
        return {}
    asked = [(one.oid, name) for one in doubtful for name in one.table.columns]
    oids, names = [oid for oid, _ in asked], [name for _, name in asked]
    row = connection.execute(_UNREADABLE, (oids, names)).fetchone()
    role, lacking = row or ("", [])
    denied = {
        relation.oid: PermissionLacking(
            f"row-level security hides rows of {relation.full_name!r} from {role!r}",
            hint="read as a role that may see all rows",
            repair=Repair(sql=_bypass(role)),
        )
        for relation in hidden
    }
    for relation in doubtful:
        if relation.oid in lacking:
            denied[relation.oid] = PermissionLacking(
                f"role {role!r} may not read {relation.full_name!r}",
                hint="the table's owner can grant it",
                repair=Repair(sql=_grant(relation, role)),
            )
    return denied


def _granted(
    found: list[ReadableRelation] | WalstreamError,
    denied: Mapping[int, PermissionLacking],
) -> list[ReadableRelation] | WalstreamError:
    if isinstance(found, WalstreamError):
        return found
    refused = (denied.get(part.relation.oid) for part in found)
    return next(filter(None, refused), found)


def _grant(relation: ChunkRelation, role: str) -> str:
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
