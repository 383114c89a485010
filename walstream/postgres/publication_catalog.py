"""Looks at publications, and at what ties tables to them: rows of the catalog.

Neither SET SCHEMA nor DETACH and ATTACH touch a publication's own rows. The first
updates the row of pg_depend that ties a table to its schema, the others delete and
insert one of pg_inherits. Of pg_class persistence and files are asked, not the xmin:
its rows are updated by GRANT, CREATE INDEX and VACUUM FULL too, which keep no row from
anybody.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from walstream.postgres.connection import Connection
from walstream.postgres.publication import Publication
from walstream.postgres.publication_facts import (
    IN_SCHEMA,
    NAMED,
    PART,
    Files,
    Sighting,
    files_of,
)

_UNLOGGED: Final = "u"
# ALTER SEQUENCE gives the row of pg_sequence another xmin; SET LOGGED does not
_OWNED: Final = """
WITH owned AS MATERIALIZED (
  SELECT d.refobjid AS oid,
    array_agg(ARRAY[s.oid::bigint, s.relfilenode::bigint, q.xmin::text::bigint]
      ORDER BY s.oid) AS sequences
  FROM pg_sequence q JOIN pg_class s ON s.oid = q.seqrelid
  JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = s.oid
    AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
  GROUP BY d.refobjid
)
"""
_FILES: Final = """
  c.relfilenode::bigint, c.reltoastrelid::bigint, coalesce(owned.sequences, '{}')
"""
# as is_publishable_class in pg_publication.c, but for the persistence. The row of a
# table's system column is as old as the table
_TABLES: Final = f"""{_OWNED}
SELECT c.oid::bigint, c.relnamespace::bigint, c.relpersistence::text,
  coalesce(d.xmin::text::bigint, 0), a.xmin::text::bigint, {_FILES}
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = -1
LEFT JOIN owned ON owned.oid = c.oid
LEFT JOIN pg_depend d ON d.classid = 'pg_class'::regclass
  AND d.objid = c.oid AND d.objsubid = 0 AND d.refclassid = 'pg_namespace'::regclass
WHERE c.relkind IN ('r', 'p') AND c.oid >= 16384 AND c.relpersistence IN ('p', 'u')
  AND (%s OR c.relnamespace::bigint = ANY (%s))
"""  # noqa: S608 - our own words
# one that is being detached concurrently is none any more
_INHERITS: Final = f"""{_OWNED}
SELECT i.inhrelid::bigint, i.inhparent::bigint, i.xmin::text, c.relpersistence::text,
  {_FILES}
FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent AND p.relkind = 'p'
JOIN pg_class c ON c.oid = i.inhrelid AND c.relkind IN ('r', 'p')
LEFT JOIN owned ON owned.oid = c.oid
WHERE NOT i.inhdetachpending
"""  # noqa: S608 - our own words


@dataclass(frozen=True, slots=True)
class _Table:
    schema: int
    persistence: str
    tie: int  # xmin of what ties it to its schema
    made: int  # xmin of what is as old as it
    file: int
    toast: int
    sequences: Sequence[Sequence[int]]

    @property
    def files(self) -> Files:
        return files_of(self.file, self.toast, self.sequences)

    def rewritten(self, oid: int) -> bool:
        """Return whether its file is another, though not by TRUNCATE or VACUUM.

        The first one has the table's number. Those keep the TOAST table, which is older
        than their file; SET LOGGED makes one behind its own.
        """
        return self.file not in {0, oid} and not 0 < self.toast < self.file


@dataclass(frozen=True, slots=True)
class _Trees:
    """Partitions."""

    marks: Mapping[int, Mapping[int, str]]  # by topmost table: what ties each to it
    files: Mapping[int, Files]


def see(
    connection: Connection, found: Mapping[str, Publication]
) -> dict[str, Sighting]:
    """Look at what ties tables to the publications that were found."""
    every = any(made.all_tables for made in found.values())
    schemas = {oid for made in found.values() for oid in made.schema_rows}
    tables: dict[int, _Table] = {}
    if every or schemas:
        rows = connection.execute(_TABLES, (every, sorted(schemas))).fetchall()
        tables = {oid: _Table(*fields) for oid, *fields in rows}
    trees = _trees(connection.execute(_INHERITS).fetchall())
    return {name: _seen(made, tables, trees) for name, made in found.items()}


def _trees(rows: Iterable[tuple[Any, ...]]) -> _Trees:
    parents: dict[int, int] = {}
    marks: dict[int, str] = {}
    files: dict[int, Files] = {}
    for member, parent, xmin, persistence, *found in rows:
        parents[member] = parent
        files[member] = files_of(*found)
        unlogged = persistence == _UNLOGGED
        marks[member] = f"{xmin} unlogged" if unlogged else xmin
    trees: dict[int, dict[int, str]] = {}
    for member, mark in marks.items():
        above = parents.get(member)
        while above is not None:  # a branch may be published by itself
            trees.setdefault(above, {})[member] = mark
            above = parents.get(above)
    return _Trees(trees, files)


def _seen(made: Publication, tables: Mapping[int, _Table], trees: _Trees) -> Sighting:
    ways: dict[int, set[str]] = {}
    unlogged: set[int] = set()
    for named, (oid, xmin, part) in made.rows.items():
        way = f"{NAMED} {oid} {xmin}{PART if part else ''}"
        ways.setdefault(named, set()).add(way)
    ties = {
        schema: f"{IN_SCHEMA} {oid} {xmin}"
        for schema, (oid, xmin) in made.schema_rows.items()
    }
    for oid, table in tables.items():
        if not (made.all_tables or table.schema in ties):
            continue
        if table.persistence == _UNLOGGED:
            unlogged.add(oid)
            continue
        if table.schema in ties:
            ways.setdefault(oid, set()).add(f"{ties[table.schema]} {table.tie}")
        if made.all_tables:
            ways.setdefault(oid, set()).add("all")
    leaves = _leaves(made, ways, trees.marks)
    tied = {leaf for marks in leaves.values() for leaf in marks}
    files = {leaf: trees.files[leaf] for leaf in tied}
    seen = ways.keys() & tables.keys()
    files |= {oid: tables[oid].files for oid in seen}
    brought = {oid for oid in seen if _brought(oid, tables[oid], ways[oid])}
    return Sighting(
        oid=made.oid,
        operations=made.operations,
        via_root=made.via_root,
        tables=frozenset(made.tables),
        owner=made.owner,
        generated=made.generated,
        xmin=made.xmin,
        last=max(made.places, default=(0, 0)),
        ways={oid: frozenset(found) for oid, found in ways.items()},
        leaves=leaves,
        schemas=frozenset(ties.values()),
        unlogged=frozenset(
            unlogged - {leaf for root in leaves for leaf in trees.marks[root]}
        ),
        files={oid: found for oid, found in files.items() if found[0]},
        brought=frozenset(brought),
        place=made.place,
        places=made.places,
    )


def _brought(oid: int, table: _Table, ways: Collection[str]) -> bool:
    """Return whether it may have rows that no publication was there for."""
    moved = table.tie != table.made and all(way.startswith(IN_SCHEMA) for way in ways)
    return moved or table.rewritten(oid)


def _leaves(
    made: Publication,
    ways: dict[int, set[str]],
    trees: Mapping[int, Mapping[int, str]],
) -> dict[int, dict[int, str]]:
    """Find the partitions whose rows are published for their root's sake.

    Through the root they go out as its rows, whatever else publishes them.
    """
    roots: Collection[int] = ways.keys() & trees.keys()
    if made.via_root:
        below = {leaf for root in roots for leaf in trees[root]}
        for leaf in below:
            ways.pop(leaf, None)
        roots = [root for root in roots if root not in below]
    return {
        root: {leaf: mark for leaf, mark in trees[root].items() if leaf not in ways}
        for root in sorted(roots)
    }
