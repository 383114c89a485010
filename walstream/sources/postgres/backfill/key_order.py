"""A table's key as its index orders it, and the COPY of the rows that come behind one.

Operators are named with their schemas: those of the index, wherever they are. The
session's search_path leads to no other user's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from psycopg import sql

from walstream.errors import ConfigError
from walstream.sources.postgres.backfill.publication_filter import Connection
from walstream.sources.postgres.backfill.table import ReadableRelation

# The index whose columns identify a row in the stream, in the order it is searched by.
# One that is not a btree (GiST, for WITHOUT OVERLAPS) has no order, and other numbers
# for its operators: then the order is the type's own.
_KEY: Final = """
SELECT n.nspname, c.relname, c.oid::bigint, ARRAY(
    SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
    WHERE place <= i.indnkeyatts ORDER BY place),
  to_jsonb(ARRAY(
    SELECT CASE WHEN i.indcollation[place - 1] NOT IN (0, a.attcollation) THEN
      (SELECT json_build_array(s.nspname, l.collname) FROM pg_collation l
       JOIN pg_namespace s ON s.oid = l.collnamespace
       WHERE l.oid = i.indcollation[place - 1]) END
    FROM unnest(i.indkey) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
    WHERE place <= i.indnkeyatts ORDER BY place)),
  to_jsonb(ARRAY(
    SELECT (SELECT json_agg(CASE WHEN m.amopstrategy > 1 OR NOT o.opcdefault THEN
          format('OPERATOR(%%I.%%s)', s.nspname, r.oprname) ELSE '' END
        ORDER BY m.amopstrategy)
      FROM pg_opclass o JOIN pg_amop m ON m.amopfamily = o.opcfamily
        AND m.amoplefttype = o.opcintype AND m.amoprighttype = o.opcintype
        AND m.amoppurpose = 's' AND m.amopstrategy IN (1, 3, 4, 5)
      JOIN pg_operator r ON r.oid = m.amopopr
      JOIN pg_namespace s ON s.oid = r.oprnamespace
      WHERE o.oid = by.classes[place])
    FROM unnest(i.indkey) WITH ORDINALITY AS k (number, place)
    WHERE place <= i.indnkeyatts ORDER BY place)),
  ARRAY(
    SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
    JOIN pg_opclass o ON o.oid = by.classes[place]
    JOIN pg_type t ON t.oid = o.opcintype AND t.typtype = 'p'
    WHERE place <= i.indnkeyatts AND EXISTS (SELECT FROM pg_cast x
      WHERE x.castcontext = 'i' AND x.castsource IN (
        WITH RECURSIVE base (type) AS (
          SELECT a.atttypid UNION ALL
          SELECT d.typbasetype FROM pg_type d JOIN base ON d.oid = base.type
          WHERE d.typtype = 'd')
        SELECT type FROM base))),
  ARRAY(
    SELECT concat_ws(' ', a.attnum, a.atttypid, by.classes[place],
      i.indcollation[place - 1],
      pg_collation_actual_version(nullif(i.indcollation[place - 1], 0)))
    FROM unnest(i.indkey) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
    WHERE place <= i.indnkeyatts ORDER BY place),
  to_jsonb(ARRAY(
    SELECT (WITH RECURSIVE base (type) AS (
        SELECT a.atttypid UNION ALL
        SELECT d.typbasetype FROM pg_type d JOIN base ON d.oid = base.type
        WHERE d.typtype = 'd')
      SELECT json_build_array(s.nspname, t.typname) FROM base
      JOIN pg_type t ON t.oid = base.type AND t.typtype = 'c'
      JOIN pg_namespace s ON s.oid = t.typnamespace)
    FROM unnest(i.indkey) WITH ORDINALITY AS k (number, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
    WHERE place <= i.indnkeyatts ORDER BY place))
FROM unnest(%s::text[], %s::text[]) AS wanted (schema, name)
JOIN pg_namespace n ON n.nspname = wanted.schema
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = wanted.name
LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisvalid
  AND CASE c.relreplident WHEN 'i' THEN i.indisreplident AND i.indimmediate
    WHEN 'd' THEN i.indisprimary AND i.indimmediate
    WHEN 'f' THEN i.indisprimary ELSE false END
LEFT JOIN LATERAL (SELECT ARRAY(
  SELECT CASE o.opcmethod WHEN m.btree THEN o.oid ELSE
    (SELECT b.oid FROM pg_opclass b WHERE b.opcdefault AND b.opcmethod = m.btree
      AND b.opcintype = o.opcintype) END
  FROM unnest(i.indclass::oid[]) WITH ORDINALITY AS k (class, place)
  JOIN pg_opclass o ON o.oid = k.class
  CROSS JOIN (SELECT oid FROM pg_am WHERE amname = 'btree') AS m (btree)
  ORDER BY k.place)) AS by (classes) ON true
WHERE c.relkind IN ('r', 'p')
"""


class Operators(NamedTuple):
    """Comparison of two values of a key's column, wherever the operators are."""

    less: str  # "": that of its type
    equal: str
    not_less: str
    greater: str


@dataclass(frozen=True, slots=True)
class Keyed:
    """A table and its key."""

    schema: str
    name: str
    key: tuple[str, ...]  # the row key, in the index's order
    collations: tuple[tuple[str, str] | None, ...]  # where not the columns' own
    operators: tuple[Operators, ...]  # of the index
    # what decides of two of its values which is first; and of which table they are
    order: tuple[str, ...]
    composites: tuple[tuple[str, str] | None, ...]  # the type, where it is composite
    oid: int


def find(connection: Connection, name: str) -> Keyed:
    """Find a table's key; ConfigError where there is none to read it by."""
    row: Any = connection.execute(_KEY, _places(name)).fetchone()
    if row is None:
        raise ConfigError(f"there is no table {name!r}")
    schema, bare, oid, key, collations, operators, led_astray, order, composites = row
    if not key:
        raise ConfigError(
            f"table {name!r} has no row key: its existing rows cannot be sent while "
            "the source streams",
            hint="give it a primary key or a replica identity; or start from scratch, "
            "with all rows: walstream positions reset SOURCE, then run",
        )
    if unordered := [c for c, by in zip(key, operators, strict=True) if by is None]:
        raise ConfigError(
            f"the type of {', '.join(unordered)}, of the key of table {name!r}, has no "
            "order: its existing rows cannot be sent while the source streams",
            hint="give the table another replica identity; or start from scratch, with "
            "all rows: walstream positions reset SOURCE, then run",
        )
    if led_astray:
        raise ConfigError(
            f"the type of {', '.join(led_astray)}, of the key of table {name!r}, has an"
            " implicit cast: values would be compared as those of another type",
            hint="drop the cast, or make it AS ASSIGNMENT; or start from scratch, with "
            "all rows: walstream positions reset SOURCE, then run",
        )
    return Keyed(
        schema,
        bare,
        tuple(key),
        tuple(tuple(one) if one else None for one in collations),
        tuple(Operators(*one) for one in operators),
        (*order, f"table {oid}"),
        tuple(tuple(one) if one else None for one in composites),
        oid,
    )


def _places(name: str) -> tuple[list[str], list[str]]:
    """Return the schemas and names that `schema.table` may mean: either may have dots.

    To be looked up: every table's name would be put together else.
    """
    parts = name.split(".")
    cuts = range(1, len(parts))
    return [".".join(parts[:n]) for n in cuts], [".".join(parts[n:]) for n in cuts]


def statement(
    keyed: Keyed, part: ReadableRelation, after: tuple[str, ...] | None, most: int
) -> sql.Composed:
    """Write the COPY of some rows behind a key; of a root, with its leaves."""
    relation = part.relation
    alone = (relation.schema, relation.name) == (keyed.schema, keyed.name)
    key = [
        sql.Identifier(column)
        if collation is None
        else sql.SQL("{} COLLATE {}").format(
            sql.Identifier(column), sql.Identifier(*collation)
        )
        for column, collation in zip(keyed.key, keyed.collations, strict=True)
    ]
    wanted = []
    if after is not None:
        bounds = [
            _bound(text, composite)
            for text, composite in zip(after, keyed.composites, strict=True)
        ]
        wanted.append(_behind(key, keyed.operators, bounds))
    if relation.row_filter:
        # as the server itself printed it
        wanted.append(sql.SQL("({})").format(sql.SQL(relation.row_filter)))
    return sql.SQL(
        "COPY (SELECT {} FROM {}{}{} ORDER BY {} LIMIT {}) TO STDOUT"
    ).format(
        sql.SQL(", ").join(map(sql.Identifier, relation.table.columns)),
        sql.SQL("ONLY " if alone else ""),
        sql.Identifier(keyed.schema, keyed.name),
        sql.SQL(" WHERE ") + sql.SQL(" AND ").join(wanted) if wanted else sql.SQL(""),
        sql.SQL(", ").join(
            column + sql.SQL(f" USING {operators.less}" if operators.less else "")
            for column, operators in zip(key, keyed.operators, strict=True)
        ),
        sql.Literal(most),
    )


def _bound(text: str, composite: tuple[str, str] | None) -> sql.Composable:
    """Write a value; one of a composite type with its type, which it needs."""
    if composite is None:
        return sql.Literal(text)
    return sql.SQL("{}::{}").format(sql.Literal(text), sql.Identifier(*composite))


def _behind(
    key: Sequence[sql.Composable],
    operators: Sequence[Operators],
    bounds: Sequence[sql.Composable],
) -> sql.Composed:
    """Compare a key with what comes before it.

    Rows are compared by one operator. Columns that have several, as int4 and an
    extension's type, are taken one by one; the index is searched by the first then.
    """
    if len(set(operators)) == 1:
        columns, values = (sql.SQL(", ").join(each) for each in (key, bounds))
        greater = sql.SQL(f" {operators[0].greater} ")
        return sql.SQL("({}){}({})").format(columns, greater, values)
    behind: sql.Composable = sql.SQL("false")
    for column, by, bound in reversed(list(zip(key, operators, bounds, strict=True))):
        behind = sql.SQL(
            f"({{0}} {by.greater} {{1}} OR {{0}} {by.equal} {{1}} AND {{2}})"
        ).format(column, bound, behind)
    first = sql.SQL(f"{{}} {operators[0].not_less} {{}} AND ")
    return first.format(key[0], bounds[0]) + behind
