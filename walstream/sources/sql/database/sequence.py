"""Sequences that give a table its keys in PostgreSQL."""

from typing import Final

from walstream.sources.sql.database.shape import SqlTableShape

DRAWN: Final = """
WITH RECURSIVE family (oid) AS (
  SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE c.relname = :name AND CASE :schema WHEN '' THEN pg_table_is_visible(c.oid)
    ELSE n.nspname = :schema END
  UNION SELECT i.inhrelid FROM pg_inherits i JOIN family f ON f.oid = i.inhparent
), drawn (oid) AS (
  SELECT d.objid FROM pg_depend d JOIN pg_attribute a
    ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
  WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
    AND d.deptype = 'i' AND a.attname = :key AND a.attrelid IN (SELECT oid FROM family)
  UNION SELECT d.refobjid FROM pg_depend d JOIN pg_attrdef v ON v.oid = d.objid
    JOIN pg_attribute a ON a.attrelid = v.adrelid AND a.attnum = v.adnum
  WHERE d.classid = 'pg_attrdef'::regclass AND d.refclassid = 'pg_class'::regclass
    AND a.attname = :key AND a.attrelid IN (SELECT oid FROM family)
)
""".strip()
"""The beginning of a statement: `family`, a table and its partitions, and `drawn`, the
sequences that the key's default or identity names. It asks for `asked`."""


def asked(shape: SqlTableShape) -> dict[str, str]:
    """Return the parameters of what asks for a table's key, by any engine."""
    return {"schema": shape.schema, "name": shape.table, "key": shape.key.name}
