"""Facts of columns, asked of a server's catalog as of now."""

from collections.abc import Sequence
from typing import Any, Final

import psycopg

from walstream.op import ColumnFacts

_FACTS: Final = """
WITH RECURSIVE base AS (
  SELECT a.attrelid, a.attnum, t.oid, t.typtype, t.typbasetype, a.atttypmod AS modifier
  FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
  WHERE a.attnum > 0 AND NOT a.attisdropped
  UNION ALL
  SELECT base.attrelid, base.attnum, t.oid, t.typtype, t.typbasetype,
    CASE WHEN d.typtypmod <> -1 THEN d.typtypmod ELSE base.modifier END
  FROM base JOIN pg_type d ON d.oid = base.oid AND base.typtype = 'd'
  JOIN pg_type t ON t.oid = d.typbasetype
)
SELECT n.nspname, c.relname, a.attname,
  a.attnotnull AND NOT EXISTS (SELECT FROM pg_constraint v
    WHERE v.conrelid = a.attrelid AND v.conkey = ARRAY[a.attnum]
    AND v.contype = 'n' AND NOT v.convalidated)
  OR t.typtype = 'd' AND t.typnotnull,
  CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END,
  t.oid::int8, t.typname,
  CASE WHEN t.typtype = 'd' THEN b.oid::int8 ELSE 0 END,
  CASE WHEN t.typtype = 'd' THEN b.typname ELSE '' END,
  CASE WHEN t.typtype = 'd' THEN base.modifier ELSE -1 END,
  coalesce(e.oid::int8, 0), coalesce(e.typname, ''),
  ARRAY(SELECT l.enumlabel::text FROM pg_enum l
    WHERE l.enumtypid = coalesce(e.oid, b.oid) ORDER BY l.enumsortorder)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_type t ON t.oid = a.atttypid
JOIN base ON base.attrelid = c.oid AND base.attnum = a.attnum AND base.typtype <> 'd'
JOIN pg_type b ON b.oid = base.oid
LEFT JOIN pg_type e ON e.typarray = b.oid
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema'
  AND n.nspname !~ '^pg_'
ORDER BY n.nspname, c.relname, a.attnum
"""

TableFacts = dict[tuple[str, str], dict[str, ColumnFacts]]


def column_facts(fields: Sequence[Any]) -> ColumnFacts:
    """Make them of their fields, the labels in a list."""
    made: Any = [tuple(one) if isinstance(one, list) else one for one in fields]
    return ColumnFacts(*made)


def facts_now(connection: psycopg.Connection[Any]) -> TableFacts:
    """Ask for the facts of all tables' columns, by schema, name and column."""
    found: TableFacts = {}
    for schema, table, column, *rest in connection.execute(_FACTS).fetchall():
        made = column_facts(rest)
        found.setdefault((schema, table), {})[column] = made
    return found
