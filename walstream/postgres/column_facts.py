"""Facts of columns in the catalog: what a schema says beyond the stream's own types.

A column is found by its table and name, and only believed while it has the type that
the stream described: else it was changed since. Its type is found by oid, whatever
became of the column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from walstream.op import ColumnFacts
from walstream.pipeline.pgoutput.messages import Column
from walstream.postgres.catalog import HOLDS_NO_NULL
from walstream.postgres.connection import Connection

# A domain over a domain has the modifier of the nearest one that says some, and is NOT
# NULL only by itself: so JDBC's metadata has it, which Debezium reads.
_TYPES: Final = """
WITH RECURSIVE base AS (
  SELECT t.oid AS of, t.oid, t.typtype, t.typbasetype, -1 AS modifier
  FROM pg_type t WHERE t.oid = ANY (%(oids)s::oid[])
  UNION ALL
  SELECT base.of, t.oid, t.typtype, t.typbasetype,
    CASE WHEN base.modifier = -1 THEN d.typtypmod ELSE base.modifier END
  FROM base JOIN pg_type d ON d.oid = base.oid AND base.typtype = 'd'
  JOIN pg_type t ON t.oid = d.typbasetype
)
SELECT t.oid::int8, t.typname::text, t.typtype = 'd' AND t.typnotnull,
  CASE WHEN t.typtype = 'd' THEN b.oid::int8 ELSE 0 END,
  CASE WHEN t.typtype = 'd' THEN b.typname::text ELSE '' END,
  CASE WHEN t.typtype = 'd' THEN base.modifier ELSE -1 END,
  coalesce(e.oid::int8, 0), coalesce(e.typname::text, ''),
  ARRAY(SELECT l.enumlabel::text FROM pg_enum l
    WHERE l.enumtypid = coalesce(e.oid, b.oid) ORDER BY l.enumsortorder)
FROM base JOIN pg_type t ON t.oid = base.of JOIN pg_type b ON b.oid = base.oid
LEFT JOIN pg_type e ON e.typarray = b.oid
WHERE base.typtype <> 'd'
"""
_COLUMNS: Final = f"""
SELECT a.attname::text, a.atttypid::int8, {HOLDS_NO_NULL},
  CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, 0) END -- locks no table
FROM pg_attribute a
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %(oid)s::oid AND a.attnum > 0 AND NOT a.attisdropped
"""  # noqa: S608 - of a constant


@dataclass(frozen=True, slots=True)
class _Attribute:
    type_oid: int
    not_null: bool
    default: str | None


def of_columns(
    connection: Connection, oid: int, columns: Sequence[Column]
) -> tuple[ColumnFacts, ...]:
    """Return the facts of a table's columns, in their order, as of now.

    Of a column that is gone, or has another type by now, those of its type alone; of a
    type that is gone none.
    """
    types = _types(connection, {column.type_oid for column in columns})
    attributes = _attributes(connection, oid)
    return tuple([_merged(column, types, attributes) for column in columns])


def _merged(
    column: Column,
    types: Mapping[int, ColumnFacts],
    attributes: Mapping[str, _Attribute],
) -> ColumnFacts:
    facts = types.get(column.type_oid, ColumnFacts())
    attribute = attributes.get(column.name)
    if attribute is None or attribute.type_oid != column.type_oid:
        return facts
    if facts.base_oid and facts.base_modifier == -1:
        facts = replace(facts, base_modifier=column.type_modifier)
    return replace(
        facts,
        not_null=facts.not_null or attribute.not_null,
        default=attribute.default,
    )


def _types(connection: Connection, oids: set[int]) -> dict[int, ColumnFacts]:
    rows = connection.execute(_TYPES, {"oids": sorted(oids)}).fetchall()
    return {
        row[0]: ColumnFacts(
            type_oid=row[0],
            type_name=row[1],
            not_null=row[2],
            base_oid=row[3],
            base_name=row[4],
            base_modifier=row[5],
            element_oid=row[6],
            element_name=row[7],
            labels=tuple(row[8]),
        )
        for row in rows
    }


def _attributes(connection: Connection, oid: int) -> dict[str, _Attribute]:
    rows = connection.execute(_COLUMNS, {"oid": oid}).fetchall()
    return {row[0]: _Attribute(*row[1:]) for row in rows}
