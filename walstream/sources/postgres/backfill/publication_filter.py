"""Filter of publications on tables: columns, rows, and whether inserts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from walstream.errors import ConfigError

Connection = psycopg.Connection[tuple[Any, ...]]

_PUBLISHED: Final = """
SELECT t.schemaname, t.tablename, t.attnames::text[], t.rowfilter, p.pubinsert
FROM pg_publication_tables t JOIN pg_publication p ON p.pubname = t.pubname
WHERE t.pubname = ANY (%s) ORDER BY t.pubname
"""
# As the view has it, of some tables alone: that opens all there are, and waits for each
# one's lock. A leaf is in by any root above it, or where roots publish, by none but
# itself; its own entry says what of it, unless it is in with all tables or its schema.
_PUBLISHED_OF: Final = """
WITH RECURSIVE up AS (
  SELECT c.oid AS relid, c.oid, c.relnamespace, c.relispartition
  FROM unnest(%(schemas)s::text[], %(names)s::text[]) AS wanted (schema, name)
  JOIN pg_namespace n ON n.nspname = wanted.schema
  JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name
  UNION ALL
  SELECT up.relid, c.oid, c.relnamespace, c.relispartition
  FROM up JOIN pg_inherits i ON i.inhrelid = up.oid AND up.relispartition
  JOIN pg_class c ON c.oid = i.inhparent
), held AS (
  SELECT p.oid AS pubid, up.relid, bool_or(up.oid = up.relid) AS itself,
    bool_or(up.oid <> up.relid) AS above
  FROM up JOIN pg_publication p ON p.pubname = ANY (%(publications)s)
  WHERE p.puballtables OR EXISTS (
    SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = up.oid)
    OR EXISTS (SELECT FROM pg_publication_namespace s
      WHERE s.pnpubid = p.oid AND s.pnnspid = up.relnamespace)
  GROUP BY p.oid, up.relid
)
SELECT n.nspname, c.relname,
  ARRAY(SELECT a.attname::text FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    AND CASE WHEN r.prattrs IS NOT NULL THEN a.attnum = ANY (r.prattrs)
      ELSE a.attgenerated IN ('', coalesce(to_jsonb(p) ->> 'pubgencols', 's')) END
    ORDER BY a.attnum),
  pg_get_expr(r.prqual, r.prrelid), p.pubinsert
FROM held JOIN pg_publication p ON p.oid = held.pubid
JOIN pg_class c ON c.oid = held.relid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_publication_rel r ON r.prpubid = p.oid AND r.prrelid = c.oid
  AND NOT p.puballtables AND NOT EXISTS (SELECT FROM pg_publication_namespace s
    WHERE s.pnpubid = p.oid AND s.pnnspid = c.relnamespace)
WHERE c.relpersistence = 'p' AND CASE WHEN p.pubviaroot
  THEN c.relkind IN ('r', 'p') AND held.itself AND NOT held.above
  ELSE c.relkind = 'r' END
ORDER BY p.pubname
"""
_CAPTURED: Final = """
SELECT DISTINCT schemaname || '.' || tablename FROM pg_publication_tables
WHERE pubname = ANY (%s) ORDER BY 1
"""


def published(connection: Connection, publications: Iterable[str]) -> list[str]:
    """Name the tables whose rows go out by these publications, as `schema.table`."""
    rows = connection.execute(_CAPTURED, (list(publications),)).fetchall()
    return [name for (name,) in rows]


@dataclass(frozen=True, slots=True)
class KeyedTable:
    """A table to read, as its stream is keyed."""

    schema: str
    name: str
    key: tuple[str, ...] = ()  # columns of the row key
    publications: tuple[str, ...] = ()  # none: every column, every row
    ranges: tuple[str, ...] = ()  # columns of a unique index, to read by key ranges
    by_key: bool = False  # read by them also where place would do
    facts: bool = False  # does a sink's format write what only the catalog says?
    where: str = field(default="", repr=False)  # SQL of the rows to read; "": all

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"


class NoSuchTable(ConfigError):
    """The table is not there, or is published no more."""


Through = Mapping[tuple[str, str], Sequence[tuple[Sequence[str], str | None, bool]]]
"""What publications let through of each table: columns, rows, and whether inserts."""


def let_through(connection: Connection, publications: Iterable[str]) -> Through:
    """Ask once for all tables."""
    return _by_table(connection.execute(_PUBLISHED, (list(publications),)).fetchall())


def let_through_of(connection: Connection, wanted: Sequence[KeyedTable]) -> Through:
    """Ask for these tables alone, each by all publications of any."""
    names = dict.fromkeys(name for one in wanted for name in one.publications)
    if not names:
        return {}
    asked = {
        "schemas": [one.schema for one in wanted],
        "names": [one.name for one in wanted],
        "publications": list(names),
    }
    return _by_table(connection.execute(_PUBLISHED_OF, asked).fetchall())


def _by_table(rows: Iterable[tuple[Any, ...]]) -> Through:
    found: dict[tuple[str, str], list[tuple[Sequence[str], str | None, bool]]] = {}
    for schema, name, columns, row_filter, inserts in rows:
        found.setdefault((schema, name), []).append((columns, row_filter, inserts))
    return found


def what_is_let_through(
    wanted: KeyedTable, through: Through
) -> tuple[Sequence[str] | None, str]:
    """Return the columns that are let through, and the rows, as SQL."""
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
