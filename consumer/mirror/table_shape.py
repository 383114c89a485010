"""Shape of a target table, and the features that a mirror cannot follow.

Read from the target's catalog within the consumer's own transaction, so that it is the
database that is written to.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow, tuple_row

from consumer.mirror.envelope_fit import ColumnType, Fit
from consumer.mirror.position_store import GENERAL, KeyType, Store
from consumer.pg_catalog import ABOVE, IS, pinned

Connection = psycopg.Connection[Any]

# The last column tells whether a table's rows are in it, and not in its children: there
# a trigger for INSERT (4) or a rule may put them, or TimescaleDB, which has neither.
_COLUMNS: Final = """
SELECT a.attname, a.attgenerated <> '', a.attidentity = 'a', a.atttypid::int8,
       (SELECT bool_or(t.oid::int8 = ANY(%s) OR t.typtype = 'e') FROM (
          WITH RECURSIVE base (type) AS (
            SELECT a.atttypid UNION ALL
            SELECT d.typbasetype FROM pg_type d JOIN base ON d.oid = base.type
             WHERE d.typtype = 'd')
          SELECT type FROM base) AS chain JOIN pg_type t ON t.oid = chain.type)
       AND coalesce(l.collisdeterministic, true),
       CASE WHEN a.atttypmod = -1 THEN format('%%I.%%I', s.nspname, t.typname)
         WHEN s.nspname = 'pg_catalog' THEN format_type(a.atttypid, a.atttypmod)
         ELSE format('%%I.%%I%%s', s.nspname, t.typname,
           substring(format_type(a.atttypid, a.atttypmod) FROM '[(].*[)]$')) END,
       coalesce(
         ' COLLATE ' || quote_ident(m.nspname) || '.' || quote_ident(l.collname), ''),
       c.relkind = 'p',
       EXISTS (SELECT FROM pg_constraint r WHERE r.confrelid = c.oid
                AND r.contype = 'f' AND r.conrelid <> c.oid),
       EXISTS (SELECT FROM pg_constraint r WHERE r.condeferred
                AND c.oid IN (r.conrelid, r.confrelid)),
       (SELECT format('%%I.%%I', n.nspname, l.typname) FROM pg_type l
          JOIN pg_namespace n ON n.oid = l.typnamespace
         WHERE l.oid = t.typarray AND t.typdelim = ','
           -- unnest makes columns of a composite
           AND 'c' NOT IN (t.typtype, coalesce((SELECT b.typtype FROM pg_type b
                 WHERE b.oid = t.typbasetype), t.typtype))),
       c.relkind = 'r' AND NOT c.relhasrules AND NOT c.relhassubclass
         AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid)
         AND (SELECT count(*) FROM pg_index i
               WHERE i.indrelid = c.oid AND (i.indisunique OR i.indisexclusion)) = 1,
       c.relkind = 'r' AND NOT c.relhasrules
         AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid
               AND NOT t.tgisinternal AND t.tgtype & 4 = 4)
         AND NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'timescaledb')
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_attribute a
    ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_namespace s ON s.oid = t.typnamespace
  LEFT JOIN pg_collation l ON l.oid = a.attcollation
  LEFT JOIN pg_namespace m ON m.oid = l.collnamespace AND l.collname <> 'default'
 WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p', 'f')
 ORDER BY a.attnum
"""
# Changes with all that a statement of a mirror stands on. A foreign key is a trigger of
# both of its tables. A schema is renamed without a lock of its tables. A first child is
# nothing of it: the mirror's own row may make one, by a trigger or in TimescaleDB.
SIGNATURE: Final = f"""
pg_catalog.hashtextextended(pg_catalog.concat_ws(' ',
  c.oid, c.relname, c.relnamespace::pg_catalog.regnamespace, c.relkind,
  c.relhasrules,
  EXISTS (SELECT FROM pg_catalog.pg_extension e WHERE e.extname {IS} 'timescaledb'),
  (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', a.attname, a.atttypid,
            a.atttypmod, a.attcollation, a.attgenerated, a.attidentity),
            ',' ORDER BY a.attnum)
     FROM pg_catalog.pg_attribute a
    WHERE a.attrelid {IS} c.oid AND a.attnum {ABOVE} 0 AND NOT a.attisdropped),
  (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', i.indexrelid, i.indisprimary,
            i.indisreplident, i.indisvalid), ',' ORDER BY i.indexrelid)
     FROM pg_catalog.pg_index i
    WHERE i.indrelid {IS} c.oid AND (i.indisunique OR i.indisexclusion)),
  (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', t.oid, t.tgenabled,
            t.tginitdeferred), ',' ORDER BY t.oid)
     FROM pg_catalog.pg_trigger t WHERE t.tgrelid {IS} c.oid)), 0)
"""  # noqa: S608 - of operators alone
"""A number for the table `c`, of `pg_class`."""
_SIGNED: Final = f"""
SELECT c.oid::pg_catalog.int8, {SIGNATURE}
  FROM pg_catalog.pg_class c
  JOIN pg_catalog.pg_namespace n ON n.oid {IS} c.relnamespace
 WHERE n.nspname {IS} %s AND c.relname {IS} %s
"""  # noqa: S608 - likewise
# Types whose equal values print alike; an enumeration's do, too. Of any other type one
# key may come in several spellings: citext, numeric (1.0 and 1.00), float8 (-0 and 0),
# interval, jsonb, char(n) when it grew, and what holds such ones.
_SPELT_ONE_WAY: Final = [
    *(16, 17, 18, 19),  # bool, bytea, "char", name
    *(20, 21, 23, 26),  # int8, int2, int4, oid
    *(25, 1043),  # text, varchar: of a deterministic collation
    *(1082, 1083, 1114, 1184, 1266),  # date, time, timestamp, timestamptz, timetz
    *(650, 774, 829, 869, 2950, 3220),  # cidr, macaddr8, macaddr, inet, uuid, pg_lsn
]
# A deferrable index arbitrates no ON CONFLICT; the primary key comes before another.
_KEY: Final = """
SELECT ARRAY(
         SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY AS k (num, place)
           JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num
          WHERE k.place <= i.indnkeyatts ORDER BY k.num),
       ARRAY(  -- of citext in a schema that the search_path lacks, = would be text's
         SELECT format('OPERATOR(%%I.%%s)', n.nspname, o.oprname)
           FROM unnest(i.indkey, i.indclass) WITH ORDINALITY AS k (num, class, place)
           JOIN pg_opclass f ON f.oid = k.class
           JOIN pg_amop m ON m.amopfamily = f.opcfamily AND m.amopstrategy = 3
            AND m.amoplefttype = f.opcintype AND m.amoprighttype = f.opcintype
           JOIN pg_operator o ON o.oid = m.amopopr
           JOIN pg_namespace n ON n.oid = o.oprnamespace
          WHERE k.place <= i.indnkeyatts ORDER BY k.num)
  FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = %s AND c.relname = %s AND (i.indisprimary OR i.indisreplident)
   AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
 ORDER BY i.indisprimary DESC LIMIT 1
"""
_NOT_OF_EXTENSION: Final = """
NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
             AND d.objid = c.oid AND d.deptype = 'e')
"""
# Foreign keys and triggers sleep under session_replication_role = replica.
_HAZARDS: Final = f"""
SELECT n.nspname, c.relname, kind, name
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN (
    SELECT conrelid, CASE contype WHEN 'f' THEN 'foreign key'
             WHEN 'u' THEN 'unique constraint' ELSE 'exclusion constraint' END,
           conname
      FROM pg_constraint
     WHERE contype IN ('u', 'x') OR contype = 'f'
       AND current_setting('session_replication_role') <> 'replica'
    UNION ALL
    SELECT indrelid, 'unique index', made.relname
      FROM pg_index i JOIN pg_class made ON made.oid = i.indexrelid
     WHERE indisunique AND NOT indisprimary
       AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid)
    UNION ALL
    SELECT tgrelid, 'trigger', tgname FROM pg_trigger
     WHERE NOT tgisinternal AND (tgenabled IN ('R', 'A') OR tgenabled = 'O'
       AND current_setting('session_replication_role') <> 'replica')
  ) AS found (relation, kind, name) ON found.relation = c.oid
 WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
   AND n.nspname !~ '^pg_toast' AND {_NOT_OF_EXTENSION}
 ORDER BY 1, 2, 3, 4
"""  # noqa: S608 - of constants
# what a foreign key writes by itself takes no part in the order of ops
_CASCADES: Final = f"""
WITH RECURSIVE keys AS (
  SELECT oid, oid AS root, conrelid, confrelid FROM pg_constraint
   WHERE contype = 'f' AND conparentid = 0
     AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd'))
     AND current_setting('session_replication_role') <> 'replica'
  UNION ALL
  SELECT p.oid, keys.root, p.conrelid, p.confrelid
    FROM pg_constraint p JOIN keys ON p.conparentid = keys.oid)
SELECT DISTINCT n.nspname, c.relname, format('ALTER TABLE %s DROP CONSTRAINT %I;',
         r.conrelid::regclass, r.conname)
  FROM keys JOIN pg_constraint r ON r.oid = keys.root
  JOIN pg_class c ON c.oid IN (keys.conrelid, keys.confrelid)
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE {_NOT_OF_EXTENSION}
 ORDER BY 3, 1, 2
"""  # noqa: S608 - likewise
_STRICT: Final = f"""
SELECT DISTINCT n.nspname, c.relname,
       format('ALTER TABLE %s ALTER CONSTRAINT %I DEFERRABLE;',
         r.conrelid::regclass, r.conname)
  FROM pg_constraint r JOIN pg_class c ON c.oid = r.conrelid
  JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE r.contype = 'f' AND NOT r.condeferrable AND r.conparentid = 0
   AND current_setting('session_replication_role') <> 'replica'
   AND {_NOT_OF_EXTENSION}
 ORDER BY 3
"""  # noqa: S608 - likewise
# types whose = PostgreSQL may answer from an index; the exact comparison is by text
_INDEXED_OIDS: Final = frozenset({16, 17, 20, 21, 23, 25, 1042, 1043, 1082, 1114, 1184})


@dataclass(slots=True, eq=False)
class TargetTable:
    """A table of the target. Statements made for it live and die with it."""

    schema: str
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]  # what finds a row, in the table's order; () = all columns
    generated: frozenset[str] = frozenset()
    always: frozenset[str] = frozenset()  # GENERATED ALWAYS AS IDENTITY
    indexed: frozenset[str] = frozenset()  # columns whose type an index may answer for
    respelt: frozenset[str] = frozenset()  # of the key: equal values may differ in text
    key_types: tuple[KeyType, ...] = ()  # where any is respelt
    partitioned: bool = False
    alone: bool = False  # its rows are in it, and none of those in its children
    referenced: bool = False  # by another table's foreign key
    deferred: bool = False  # a constraint would wait for the end of the transaction
    plain: bool = False  # rows go by their key alone: nothing sees in which order
    arrays: Mapping[str, str] = field(default_factory=dict)  # types, by column
    equal: Mapping[str, str] = field(default_factory=dict)  # of the key: operators
    keyed_otherwise: bool = False  # records have keys that are not the row's key
    # topics of which a record showed that its key is the row's
    proved: set[str] = field(default_factory=set)
    store: Store = GENERAL  # of its rows' positions
    oid: int = 0
    signature: int = 0  # see SIGNATURE
    statements: dict[object, str] = field(default_factory=dict)
    fitting: set[tuple[str, ...]] = field(default_factory=set)  # columns that are here
    types: Mapping[str, ColumnType] | None = None  # None: not asked for
    fits: dict[object, Fit] = field(default_factory=dict)  # by the records' shape

    @property
    def fixed(self) -> frozenset[str]:
        """Name the columns that no UPDATE can set, of those that find no row."""
        return self.always - {*self.key}

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"

    def missing(self, columns: tuple[str, ...]) -> list[str]:
        """Name the columns of an op that the target does not have."""
        if columns in self.fitting:
            return []
        lacking = [name for name in columns if name not in self.columns]
        if not lacking:
            self.fitting.add(columns)
        return lacking

    def key_of(self, row: Mapping[str, str | None]) -> dict[str, str | None] | None:
        """Take the row's key, or None where the row does not hold all of it."""
        if not self.key or any(row.get(name) is None for name in self.key):
            return None
        return {name: row[name] for name in self.key}


@dataclass(frozen=True, slots=True)
class Hazard:
    """A rule or a trigger of the target that a stream in several partitions upsets."""

    schema: str
    table: str
    kind: str
    name: str


def load(connection: Connection, schema: str, name: str) -> TargetTable | None:
    """Read a table's shape; None where there is no such table."""
    with pinned(connection), connection.cursor(row_factory=tuple_row) as cursor:
        asked = (_SPELT_ONE_WAY, schema, name)
        # before the rest: what is altered between them is seen to have changed
        signed = cursor.execute(_SIGNED, (schema, name)).fetchone()
        found = cursor.execute(_COLUMNS, asked).fetchall()
        if not found or signed is None:
            return None
        key = cursor.execute(_KEY, (schema, name)).fetchone()
    columns = [row for row in found if row[0] is not None]
    names, operators = key or ((), ())
    arrays = {row[0]: row[10].replace("%", "%%") for row in columns if row[10]}
    respelt = {row[0] for row in columns if row[0] in names and not row[4]}
    types = {row[0]: row[5:7] for row in columns}
    return TargetTable(
        schema=schema,
        name=name,
        columns=tuple(row[0] for row in columns),
        key=tuple(names),
        generated=frozenset(row[0] for row in columns if row[1]),
        always=frozenset(row[0] for row in columns if row[2]),
        indexed=frozenset(row[0] for row in columns if row[3] in _INDEXED_OIDS),
        respelt=frozenset(respelt),
        key_types=tuple(
            KeyType(types[column][0], types[column][1], operator)
            for column, operator in zip(names, operators, strict=True)
        )
        if respelt
        else (),
        partitioned=found[0][7],
        referenced=found[0][8],
        deferred=found[0][9],
        plain=found[0][11]
        and found[0][12]
        and bool(names)
        and not respelt
        and not any(row[2] and row[0] not in names for row in columns)
        and len(arrays) == len(columns),
        alone=found[0][12],
        arrays=arrays,
        equal=dict(zip(names, operators, strict=True)),
        oid=signed[0],
        signature=signed[1],
    )


def lacks(shape: TargetTable, columns: Sequence[str]) -> tuple[str, str]:
    """Return that a table lacks columns, and what adds them."""
    adds = ", ".join(
        sql.SQL("ADD COLUMN {} <its type in the source>")
        .format(sql.Identifier(column))
        .as_string()
        for column in columns
    )
    table = sql.Identifier(shape.schema, shape.name).as_string()
    return (
        f"the target lacks {', '.join(columns)}",
        f"run ALTER TABLE {table} {adds};",
    )


@contextmanager
def _asking(connection: Connection) -> Iterator[psycopg.Cursor[TupleRow]]:
    """Ask in a separate transaction, where names mean PostgreSQL's."""
    with (
        connection.transaction(),
        pinned(connection),
        connection.cursor(row_factory=tuple_row) as cursor,
    ):
        yield cursor


def hazards(connection: Connection) -> Iterable[Hazard]:
    """Name what of the target may refuse or double a change."""
    with _asking(connection) as cursor:
        return [Hazard(*row) for row in cursor.execute(_HAZARDS).fetchall()]


def strict_keys(
    connection: Connection, wanted: Callable[[str, str], bool]
) -> list[str]:
    """Return what makes foreign keys deferrable that are not."""
    with _asking(connection) as cursor:
        found = cursor.execute(_STRICT).fetchall()
    return [cure for schema, name, cure in found if wanted(schema, name)]


def cascades(connection: Connection, wanted: Callable[[str, str], bool]) -> list[str]:
    """Return what drops the foreign keys that would change wanted tables' rows."""
    with _asking(connection) as cursor:
        found = cursor.execute(_CASCADES).fetchall()
    drops = (drop for schema, name, drop in found if wanted(schema, name))
    return list(dict.fromkeys(drops))
