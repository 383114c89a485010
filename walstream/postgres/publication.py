"""The publication: which tables it should hold, making it so, noticing its loss.

A table without a usable replica identity would make the application's UPDATE and DELETE
fail once published: it goes into a second publication that publishes neither.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import psycopg

from walstream.errors import ConfigError, PermissionLacking, Repair
from walstream.postgres import quoting
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection
from walstream.postgres.publication_facts import Place
from walstream.postgres.selection import EVERYTHING, Selection

ALL_OPERATIONS: Final = "insert, update, delete, truncate"
INSERT_OPERATIONS: Final = "insert, truncate"
WITHOUT_GENERATED: Final = "n"
STORED: Final = "s"  # generated columns, but not virtual ones
_NO_RIGHT: Final = "42501"
_NO_LIST: Final = "22023"  # for a root, or beside a schema
_NO_COLUMN: Final = "42P10"  # a generated one, of a server that does not send it


def insert_only(publication: str) -> str:
    """Name the publication of tables that have no replica identity."""
    return f"{publication}_insert"


@dataclass(frozen=True, slots=True)
class Publication:
    """One publication as it is."""

    name: str
    oid: int
    all_tables: bool
    operations: frozenset[str]  # of insert, update, delete, truncate
    via_root: bool
    tables: Mapping[int, str]  # named one by one: oid to `schema.table`
    schemas: frozenset[str]  # FOR TABLES IN SCHEMA
    owner: int = 0
    generated: str | None = None  # publish_generated_columns; None: before 18
    xmin: int = 0  # of its row
    place: Place = (0, 0)  # likewise
    places: frozenset[Place] = frozenset()  # of all publications' rows
    # by table: its row's oid and xmin, and whether it lets only a part through
    rows: Mapping[int, tuple[int, int, bool]] = field(default_factory=dict)
    lists: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Column lists, by table; those without one go out whole."""
    # by the schema's oid: its row's oid and xmin
    schema_rows: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Return whether it publishes nothing, and will not by itself."""
        return not (self.all_tables or self.schemas or self.tables)

    def names(self, table: TableFacts) -> bool:
        """Return whether the table was added by its name."""
        return table.full_name in self.tables.values()

    def list_of(self, table: TableFacts) -> frozenset[str]:
        """Return the column list of a table that was added by its name; none: whole."""
        return self.lists.get(table.oid, frozenset())

    def holds(self, table: TableFacts) -> bool:
        """Return whether the table is published, by whatever way."""
        return (
            self.all_tables
            or table.schema in self.schemas
            or self.names(table)
            or (not self.via_root and table.root in self.tables.values())
        )


EMPTY: Final = "publishes no table: nothing reaches Kafka"
# Not from pg_publication_tables, which opens each table and waits for its lock.
_PUBLICATIONS: Final = """
SELECT p.pubname, p.oid::bigint, p.puballtables, p.pubinsert, p.pubupdate,
  p.pubdelete, p.pubtruncate, p.pubviaroot,
  ARRAY(SELECT n.nspname::text FROM pg_publication_namespace s
    JOIN pg_namespace n ON n.oid = s.pnnspid WHERE s.pnpubid = p.oid),
  ARRAY(SELECT r.prrelid::bigint FROM pg_publication_rel r
    WHERE r.prpubid = p.oid ORDER BY r.prrelid),
  ARRAY(SELECT n.nspname || '.' || c.relname FROM pg_publication_rel r
    JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE r.prpubid = p.oid ORDER BY r.prrelid),
  p.xmin::text::bigint, p.ctid::text, ARRAY(SELECT ctid::text FROM pg_publication),
  ARRAY(SELECT to_jsonb(ARRAY[r.oid::bigint, r.xmin::text::bigint,
      (r.prqual IS NOT NULL OR r.prattrs IS NOT NULL)::int])
    FROM pg_publication_rel r WHERE r.prpubid = p.oid ORDER BY r.prrelid),
  ARRAY(SELECT to_jsonb(ARRAY[s.pnnspid::bigint, s.oid::bigint, s.xmin::text::bigint])
    FROM pg_publication_namespace s WHERE s.pnpubid = p.oid),
  p.pubowner::bigint, to_jsonb(p)->>'pubgencols',
  to_jsonb(ARRAY(SELECT json_build_array(r.prrelid::bigint,
      ARRAY(SELECT a.attname FROM pg_attribute a WHERE a.attrelid = r.prrelid
        AND a.attnum = ANY (r.prattrs::int2[])))
    FROM pg_publication_rel r WHERE r.prpubid = p.oid AND r.prattrs IS NOT NULL))
FROM pg_publication p WHERE %(names)s::text[] IS NULL OR p.pubname = ANY (%(names)s)
ORDER BY p.pubname
"""


def find(
    connection: Connection, names: Sequence[str] | None = None
) -> dict[str, Publication]:
    """Look publications up by name; without names, all of the database."""
    wanted = None if names is None else list(names)
    operations = ("insert", "update", "delete", "truncate")
    return {
        row[0]: Publication(
            name=row[0],
            oid=row[1],
            all_tables=row[2],
            operations=frozenset(
                name for name, on in zip(operations, row[3:7], strict=True) if on
            ),
            via_root=row[7],
            schemas=frozenset(row[8]),
            tables=dict(zip(row[9], row[10], strict=True)),
            xmin=row[11],
            place=_place(row[12]),
            places=frozenset(map(_place, row[13])),
            rows={
                table: (oid, xmin, bool(part))
                for table, (oid, xmin, part) in zip(row[9], row[14], strict=True)
            },
            schema_rows={schema: (oid, xmin) for schema, oid, xmin in row[15]},
            owner=row[16],
            generated=row[17],
            lists={table: frozenset(columns) for table, columns in row[18]},
        )
        for row in connection.execute(_PUBLICATIONS, {"names": wanted}).fetchall()
    }


def _place(ctid: str) -> Place:
    page, _, line = ctid.strip("()").partition(",")
    return int(page), int(line)


_NAMES: Final = """
WITH RECURSIVE tree AS (
  SELECT c.oid, c.relkind FROM pg_class c WHERE c.oid::bigint = ANY (%s)
  UNION ALL
  SELECT c.oid, c.relkind FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid
  JOIN pg_class c ON c.oid = i.inhrelid WHERE tree.relkind = 'p' AND %s
)
SELECT DISTINCT n.nspname || '.' || c.relname FROM tree
JOIN pg_class c ON c.oid = tree.oid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE NOT (tree.relkind = 'p' AND %s) ORDER BY 1
"""


def names_of(
    connection: Connection, oids: Iterable[int], *, leaves: bool = False
) -> list[str]:
    """Name those of these tables that are still there, as `schema.table`.

    With `leaves` a partition root stands for its leaves.
    """
    rows = connection.execute(_NAMES, (list(oids), leaves, leaves)).fetchall()
    return [row[0] for row in rows]


def oids_in(connection: Connection, schemas: Iterable[str]) -> list[int]:
    """Find the tables of some schemas, partitions and roots too."""
    rows = connection.execute(
        "SELECT c.oid::bigint FROM pg_class c JOIN pg_namespace n"
        " ON n.oid = c.relnamespace"
        " WHERE c.relkind IN ('r', 'p') AND n.nspname = ANY (%s)",
        (list(schemas),),
    ).fetchall()
    return [row[0] for row in rows]


@dataclass(slots=True)
class PublicationPlan:
    """Tables by publication, and those that cannot be published, by reason."""

    identified: list[TableFacts] = field(default_factory=list)
    insert_only: list[TableFacts] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # SET LOGGED would cure it
    misfits: dict[str, str] = field(default_factory=dict)  # of their column lists

    def __iter__(self) -> Iterator[TableFacts]:
        """Yield the tables of both publications."""
        yield from self.identified
        yield from self.insert_only


def stored(wanted: Selection, found: Iterable[Publication]) -> bool:
    """Return whether stored generated columns are published, or will be."""
    there = {made.generated for made in found}
    return STORED in there if there else wanted.generated


def plan(
    wanted: Selection,
    tables: Mapping[str, TableFacts],
    found: Iterable[Publication] = (),
) -> PublicationPlan:
    """Sort the tables that are wanted; a partition whose root is goes with it.

    `found` are the existing publications.
    """
    generated = stored(wanted, found)
    names = {name for name in tables if wanted.wants(name)}
    made = PublicationPlan()
    for name in sorted(names):
        table = tables[name]
        if table.root is not None and (table.kind == "p" or table.root in names):
            continue
        if table.persistence != "p":
            made.refused[name] = "unlogged: PostgreSQL writes no WAL for it"
        elif why := wanted.misfit(table, tables):
            made.misfits[name] = why
        elif table.identified and not wanted.unsent(table, generated=generated):
            made.identified.append(table)
        else:
            made.insert_only.append(table)
    return made


def swallowed(
    wanted: Selection, tables: Mapping[str, TableFacts]
) -> dict[str, TableFacts]:
    """Return excluded partitions whose rows go out all the same: as their root's."""
    return {
        name: table
        for name, table in tables.items()
        if table.root is not None and wanted.excludes(name) and wanted.wants(table.root)
    }


def creation(
    name: str,
    tables: Iterable[TableFacts],
    publish: str,
    wanted: Selection = EVERYTHING,
    *,
    generated: bool = False,
) -> str:
    """Write what creates a publication for these tables, partitions as their root."""
    whom = _table_list(tables, wanted)
    also = ", publish_generated_columns = stored" if generated else ""
    return (
        f"CREATE PUBLICATION {quoting.name(name)}{f' FOR TABLE {whom}' if whom else ''}"
        f" WITH (publish = {quoting.text(publish)}, publish_via_partition_root = true"
        f"{also});"
    )


def with_generated(found: Iterable[Publication]) -> str:
    """Write what has these publish stored generated columns (18 and later), if any.

    All at once: PostgreSQL decodes no change of a table that two publish differently.
    """
    statements = [
        f"ALTER PUBLICATION {quoting.name(made.name)}"
        " SET (publish_generated_columns = stored);"
        for made in found
        if made.generated == WITHOUT_GENERATED
    ]
    if len(statements) > 1:
        statements = ["BEGIN;", *statements, "COMMIT;"]
    return "\n".join(statements)


def addition(
    name: str, tables: Iterable[TableFacts], wanted: Selection = EVERYTHING
) -> str:
    """Write what adds tables to a publication."""
    whom = _table_list(tables, wanted)
    return f"ALTER PUBLICATION {quoting.name(name)} ADD TABLE {whom};"


def removal(name: str, tables: Iterable[TableFacts]) -> str:
    """Write what takes tables out of a publication."""
    return f"ALTER PUBLICATION {quoting.name(name)} DROP TABLE {_table_list(tables)};"


def set_logged(table: TableFacts) -> str:
    """Write what brings an unlogged table into the WAL."""
    return f"ALTER TABLE {quoting.name(table.schema, table.name)} SET LOGGED;"


def _table_list(tables: Iterable[TableFacts], wanted: Selection = EVERYTHING) -> str:
    return ", ".join(_entry(table, wanted.columns_of(table)) for table in tables)


def _entry(table: TableFacts, columns: Sequence[str]) -> str:
    listed = f" ({', '.join(map(quoting.name, columns))})" if columns else ""
    return f"ONLY {quoting.name(table.schema, table.name)}{listed}"


def filling(name: str, facts: Mapping[str, TableFacts]) -> str:
    """Write what adds all tables that can be published whole; "": there is none."""
    every = plan(EVERYTHING, facts).identified
    return addition(name, every) if every else ""


def execute(connection: Connection, statement: str) -> None:
    """Run one of these; without the right to, the statement is its own repair."""
    try:
        # no parameters: a percent sign in a name means itself
        connection.execute(statement.encode())
    except psycopg.Error as error:
        if error.sqlstate == _NO_COLUMN:
            raise ConfigError(
                f"publication: {error.diag.message_primary}",
                hint="leave the column out of the table's list in `columns`",
            ) from error
        if error.sqlstate == _NO_LIST:
            why = error.diag.message_detail or "it does not fit the publication"
            raise ConfigError(
                f"publication: {error.diag.message_primary}: {why}",
                hint="leave the table out of `columns`, or change the publication: of "
                "a partitioned table it needs publish_via_partition_root = true",
            ) from error
        if error.sqlstate != _NO_RIGHT:
            raise
        raise PermissionLacking(
            f"publication: {error.diag.message_primary}",
            hint="the tables' owner or a superuser has to do it",
            repair=Repair(sql=statement),
        ) from error
