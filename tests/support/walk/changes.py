"""What is done to the tables and publications of a walk beside writing rows."""

# ruff: noqa: S608 - SQL of constants

import random
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.support.walk.act import Act, Kind
from tests.support.walk.tables import BY_CODE, REGIONS, TYPES, Table

PUBLICATION: Final = "walstream"
ELSEWHERE: Final = "elsewhere"
ROLE: Final = "walker_role"  # stands for walstream's, which is made for the database
_ALL: Final = "insert, update, delete, truncate"

# changes of the schema, and how often each is drawn
SCHEMA: Final = {
    "add_column": 12,
    "drop_column": 6,
    "rename": 14,
    "identify": 26,
    "another_key": 8,
    "make_anew": 6,
    "partitions": 18,
    "rewrite": 10,
}

Rows = Callable[[Table], Iterator[Act]]
"""Writes some rows of a table, each statement a transaction."""


@dataclass
class World:
    """The tables as they are, and how they are published."""

    mode: str  # patterns, listed, schema, all
    role: str  # walstream's; the tables are its `_owner`'s
    tables: list[Table] = field(default_factory=list)
    filtered: Table | None = None  # by row-level security
    closed: Table | None = None  # walstream may not read it
    reread: bool = False  # on_publication_change = "reread"

    @property
    def named(self) -> bool:
        """Tell whether the tables are published by their names."""
        return self.mode in ("patterns", "listed")

    def members(self) -> list[str]:
        """Name what is published, when it is by name."""
        return ["public.ticks", *(table.at for table in self.tables)]


class Changes:
    """Draws a change, and writes it with what is done before it is undone."""

    def __init__(
        self,
        world: World,
        choose: random.Random,
        rows: Rows,
        without: Collection[str] = (),
    ) -> None:
        self.world = world
        self.without = without
        self.choose = choose
        self.rows = rows

    def table(self, *, partitioned: bool | None = None) -> Table:
        found = [
            table
            for table in self.world.tables
            if partitioned in (None, table.partitioned)
        ]
        # there is more to change of a partitioned one
        return self.choose.choices(found, [1 + one.partitioned for one in found])[0]

    def schema(self) -> Iterator[Act]:
        """Change tables."""
        kind = self.choose.choices(tuple(SCHEMA), tuple(SCHEMA.values()))[0]
        if kind in self.without:
            return
        table = self.table()
        yield from getattr(self, f"_{kind}")(table)
        if table in self.world.tables and self.choose.random() < 0.7:
            yield from self.rows(table)

    def migration(self) -> Iterator[Act]:
        """Change the schema and write rows in one transaction."""
        table = self.table()
        kind = self.choose.choice(("add_column", "rename", "identify", "another_key"))
        if kind in self.without:
            return
        do = getattr(self, f"_{kind}")
        acts = [*self.rows(table), *do(table), *self.rows(table)]
        names = {name for act in acts for name in act.names}
        if all(act.kind in (Kind.ROWS, Kind.SCHEMA) for act in acts):
            lines = "\n".join(act.sql for act in acts)
            yield Act(Kind.MIGRATION, lines, names=tuple(sorted(names)))
        else:
            yield from acts

    def _drop_column(self, table: Table) -> Iterator[Act]:
        if table.added:
            column = table.added.pop(self.choose.randrange(len(table.added)))
            yield ddl(table, f"ALTER TABLE {table.at} DROP {column}")

    def _rewrite(self, table: Table) -> Iterator[Act]:
        """Write the table anew, with other values or the same; or look at it alone."""
        dice = self.choose.random()
        if dice < 0.3:
            yield ddl(table, f"ALTER TABLE {table.at} ALTER n TYPE int USING n + 1")
        elif dice < 0.6 or table.partitioned:
            yield Act(Kind.OPERATOR, f"ANALYZE {table.at}")
        else:
            yield Act(Kind.OPERATOR, f"VACUUM FULL {table.at}")

    def _add_column(self, table: Table) -> Iterator[Act]:
        name = table.fresh("x")
        default = self.choose.choice(["", "", " DEFAULT 5"])
        table.added.append(name)
        yield ddl(table, f"ALTER TABLE {table.at} ADD {name} int{default}")

    def _rename(self, table: Table) -> Iterator[Act]:
        what = self.choose.choice(["key", "key", "note", "table", "schema"])
        if what in ("key", "note"):
            before = getattr(table, what)
            setattr(table, what, table.fresh(what))
            yield ddl(
                table,
                f"ALTER TABLE {table.at} RENAME {before} TO {getattr(table, what)}",
            )
        elif what == "table":
            before, old = table.at, table.name
            table.name = table.fresh(f"{old.rstrip('0123456789')}_")
            yield ddl(table, f"ALTER TABLE {before} RENAME TO {table.name}", old)
        elif not (table.partitioned or table.young):
            yield from self._away(table)

    def _away(self, table: Table) -> Iterator[Act]:
        """Out of its schema and back; where the schema is published, that is a gap."""
        kind = Kind.PUBLICATION if self.world.mode == "schema" else Kind.SCHEMA
        if kind is Kind.PUBLICATION and "publication" in self.without:
            return
        yield ddl(table, f"ALTER TABLE {table.at} SET SCHEMA {ELSEWHERE}", kind=kind)
        table.schema = ELSEWHERE
        yield from self.rows(table)
        yield ddl(table, f"ALTER TABLE {table.at} SET SCHEMA public", kind=kind)
        table.schema = "public"

    def _identify(self, table: Table) -> Iterator[Act]:
        """Change replica identities: of all parts alike, or of one."""
        parts = table.parts
        if self.choose.random() < 0.4:
            parts = [self.choose.choice(parts)]
        dice = self.choose.random() / (3 if BY_CODE in table.name else 1)
        how = "FULL" if dice < 0.45 else "DEFAULT" if dice < 0.75 else "INDEX"
        for part in parts:
            yield ddl(table, identity(part, how))
            if self.choose.random() < 0.3:
                yield from self.rows(table)
        if dice > 0.95:
            yield ddl(table, identity(table.at, "NOTHING"))
            yield from self.rows(table)
            yield ddl(table, identity(table.at, "DEFAULT"))

    def _another_key(self, table: Table) -> Iterator[Act]:
        """Drop the primary key and add another; at times in one transaction with rows.

        Between the two the table has no key, so no row is written then.
        """
        yield self.another_key(table)

    def another_key(self, table: Table) -> Act:
        wide = self.choose.random() < 0.5
        region = ["region"] if table.partitioned else []
        columns = ", ".join([table.key, *region, *(["code"] if wide else [])])
        return ddl(table, _primary_key(table.at, columns))

    def _make_anew(self, _: Table) -> Iterator[Act]:
        """Drop a table and make one of the same name with another key."""
        table = self.table(partitioned=False)
        at = self.world.tables.index(table)
        fresh = Table(
            table.name,
            self.choose.choice(TYPES),
            key=self.choose.choice(["id", "uid"]),
            schema="public",
            young=True,
        )
        self.world.tables[at] = fresh
        full = ""
        if BY_CODE in table.name or self.choose.random() < 0.5:
            full = f";{identity(fresh.at, 'FULL')}"
        named = self.world.named
        added = (
            f";ALTER PUBLICATION {PUBLICATION} ADD TABLE {fresh.at}" if named else ""
        )
        yield ddl(
            fresh,
            f"DROP TABLE {table.at};{fresh.creation()}{full};"
            f"ALTER TABLE {fresh.at} OWNER TO {self.world.role}_owner{added}",
        )
        yield from self.rows(fresh)

    def _partitions(self, _: Table) -> Iterator[Act]:
        """Attach, detach, empty and drop leaves, and make new ones."""
        table = self.table(partitioned=True)
        dice = self.choose.random()
        if table.detached and dice < 0.5:
            region = self.choose.choice(sorted(table.detached))
            yield from self.attach(table, region)
        elif table.leaves and dice < 0.75:
            region = self.choose.choice(sorted(table.leaves))
            leaf = table.detached[region] = table.leaves.pop(region)
            yield ddl(
                table, f"ALTER TABLE {table.at} DETACH PARTITION public.{leaf}", leaf
            )
            if self.choose.random() < 0.5:
                yield Act(Kind.ROWS, f"UPDATE public.{leaf} SET n = 8 WHERE n < 4")
                yield from self.rows(table)
                yield from self.attach(table, region)
        elif table.leaves and dice < 0.85:
            leaf = self.choose.choice(sorted(table.leaves.values()))
            yield ddl(table, f"TRUNCATE public.{leaf}", leaf)
        elif len(table.leaves) > 1:
            region = self.choose.choice(sorted(table.leaves))
            yield ddl(table, f"DROP TABLE public.{table.leaves.pop(region)}")
            yield from self._new_leaf(table, region)
        else:
            for region in REGIONS:
                if region not in table.leaves and region not in table.detached:
                    yield from self._new_leaf(table, region)

    def attach(self, table: Table, region: str) -> Iterator[Act]:
        leaf = table.leaves[region] = table.detached.pop(region)
        yield ddl(
            table,
            f"ALTER TABLE {table.at} ATTACH PARTITION public.{leaf}"
            f" FOR VALUES IN ('{region}')",
            leaf,
        )

    def _new_leaf(self, table: Table, region: str) -> Iterator[Act]:
        leaf = table.leaves[region] = table.fresh(f"{region}_")
        # its siblings' owner: else what walstream may do to those it may not to this
        owned = f"ALTER TABLE public.{leaf} OWNER TO {self.world.role}_owner"
        yield ddl(table, f"{table.leaf_creation(region)};{owned}", leaf)

    def publication(self) -> Iterator[Act]:
        """Edit the publication; undo it at once, or after rows.

        Where walstream does not choose the tables itself, an edit that is left standing
        takes them out of the stream on purpose.
        """
        table = self.table()
        if table.young:
            # in, out and in again before a look found it: walstream cannot know
            return
        yield Act(Kind.CHECK)  # what came before: a stop ends all comparison
        out, back, names = self.edit(table)
        yield Act(Kind.PUBLICATION, out, names=names)
        # UNLOGGED and back cannot be told of tables that are not published by name
        hidden = "UNLOGGED" in out and not self.world.named
        if self.choose.random() < 0.8 and not hidden:
            yield from self.rows(table)
        # what is read anew is read as the publication says: a list left standing counts
        stands = self.world.mode == "patterns" and not self.world.reread
        if self.choose.random() < 0.9 or not stands:
            yield Act(Kind.PUBLICATION, back, names=names)

    def edit(self, table: Table) -> tuple[str, str, tuple[str, ...]]:
        """Draw an edit, what undoes it, and what a stop because of it may name."""
        p = f"ALTER PUBLICATION {PUBLICATION}"
        every = ", ".join(f"ONLY {at}" for at in self.world.members())
        others = every.replace(f", ONLY {table.at}", "")
        again = f"{p} SET TABLE {every}"
        both = (table.name, PUBLICATION)
        publish = self.choose.choice(["insert", "insert, update", "delete, update"])
        edits = [
            (f"{p} SET (publish = '{publish}')", f"{p} SET (publish = '{_ALL}')"),
            (
                f"{p} RENAME TO other_name",
                f"ALTER PUBLICATION other_name RENAME TO {PUBLICATION}",
            ),
            (
                f"DROP PUBLICATION {PUBLICATION}",
                creation(self.world.mode, self.world.members()),
            ),
            (
                f"{p} SET (publish_via_partition_root = false)",
                f"{p} SET (publish_via_partition_root = true)",
            ),
        ]
        if self.world.named:
            taken = (f"{p} DROP TABLE {table.at}", f"{p} ADD TABLE ONLY {table.at}")
            edits += [taken, taken, (f"{p} SET TABLE {others}", again)]
            edits.append(
                (f"{p} SET TABLE {others}, ONLY {table.at} WHERE (false)", again)
            )
            listed = f"{table.key}, region, code"
            edits.append((f"{p} SET TABLE {others}, ONLY {table.at} ({listed})", again))
            if not table.partitioned:
                edits.append(
                    (
                        f"{taken[0]}; ALTER TABLE {table.at} SET UNLOGGED",
                        f"ALTER TABLE {table.at} SET LOGGED; {taken[1]}",
                    )
                )
        elif self.world.mode == "schema":
            schema = "TABLES IN SCHEMA public"
            edits += [(f"{p} DROP {schema}", f"{p} ADD {schema}")] * 3
        if not self.world.named and not table.partitioned:
            edits.append(
                (
                    f"ALTER TABLE {table.at} SET UNLOGGED",
                    f"ALTER TABLE {table.at} SET LOGGED",
                )
            )
        out, back = self.choose.choice(edits)
        return out, back, both

    def harmless(self) -> Iterator[Act]:
        """Edit the publication in ways that lose nothing.

        What is undone between two looks stops walstream all the same, on purpose.
        """
        p = f"ALTER PUBLICATION {PUBLICATION}"
        owner = f"{self.world.role}_owner"
        there, back = self.choose.choice(
            [
                ("", f"{p} RENAME TO o; ALTER PUBLICATION o RENAME TO {PUBLICATION}"),
                (f"{p} OWNER TO CURRENT_USER", f"{p} OWNER TO {owner}"),
                (f"COMMENT ON PUBLICATION {PUBLICATION} IS 'ours'", ""),
                ("CREATE PUBLICATION theirs; DROP PUBLICATION theirs", ""),
            ]
        )
        if there:
            yield Act(Kind.OPERATOR, there)
        if back:
            yield Act(Kind.OPERATOR, back, names=(PUBLICATION,))

    def rights(self) -> Iterator[Act]:
        """Hide rows or a table from walstream, or give it back; or take connections."""
        world, table = self.world, self.table()
        if world.reread:
            return  # what may not be read cannot be read anew either
        owner = f"{world.role}_owner"
        dice = self.choose.random()
        if world.filtered is not None:
            table, world.filtered = world.filtered, None
            yield ddl(table, f"ALTER TABLE {table.at} DISABLE ROW LEVEL SECURITY")
        elif world.closed is not None:
            table, world.closed = world.closed, None
            yield ddl(table, f"GRANT SELECT ON {table.at} TO {owner}")
        elif dice < 0.5:
            world.filtered = table
            yield ddl(
                table,
                f"ALTER TABLE {table.at} ENABLE ROW LEVEL SECURITY,"
                " FORCE ROW LEVEL SECURITY",
            )
            yield from self.rows(table)
        elif dice < 0.75:
            world.closed = table
            yield ddl(table, f"REVOKE SELECT ON {table.at} FROM {owner}")
            yield from self.rows(table)
        else:
            yield Act(Kind.OPERATOR, f"ALTER ROLE {world.role} CONNECTION LIMIT 0")
            yield Act(Kind.OPERATOR, f"ANALYZE {table.at}")
            yield from self.rows(table)
            yield Act(Kind.OPERATOR, f"ALTER ROLE {world.role} CONNECTION LIMIT -1")


def ddl(table: Table, sql: str, *also: str, kind: Kind = Kind.SCHEMA) -> Act:
    return Act(kind, sql, names=(table.name, *also))


def identity(part: str, how: str) -> str:
    if how != "INDEX":
        return f"ALTER TABLE {part} REPLICA IDENTITY {how}"
    # a leaf's index has a name that PostgreSQL chose
    return (
        "DO $$ BEGIN EXECUTE (SELECT format("
        f"'ALTER TABLE {part} REPLICA IDENTITY USING INDEX %I', c.relname)"
        " FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
        f" WHERE i.indrelid = '{part}'::regclass AND i.indisunique"
        " AND NOT i.indisprimary LIMIT 1); END $$"
    )


def _primary_key(table: str, columns: str) -> str:
    return (
        "DO $$ BEGIN EXECUTE (SELECT format("
        f"'ALTER TABLE {table} DROP CONSTRAINT %I, ADD PRIMARY KEY ({columns})',"
        f" conname) FROM pg_constraint WHERE conrelid = '{table}'::regclass"
        " AND contype = 'p'); END $$"
    )


def creation(mode: str, tables: Iterable[str]) -> str:
    """Write what makes the publication; with patterns walstream does."""
    whom = {
        "schema": "TABLES IN SCHEMA public",
        "all": "ALL TABLES",
    }.get(mode, f"TABLE {', '.join(f'ONLY {name}' for name in tables)}")
    return (
        f"CREATE PUBLICATION {PUBLICATION} FOR {whom}"
        " WITH (publish_via_partition_root = true)"
    )


def mended(role: str, parts: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Write what brings tables back to what `walstream check` asks for.

    `parts` are their names with pg_class.relkind, leaves too.
    """
    yield f"ALTER ROLE {role} CONNECTION LIMIT -1"
    yield "DROP PUBLICATION IF EXISTS other_name"
    for name, kind in parts:
        yield f"GRANT SELECT ON {name} TO {role}_owner"
        yield f"ALTER TABLE {name} DISABLE ROW LEVEL SECURITY"
        if kind == "r":
            yield f"ALTER TABLE {name} SET LOGGED"
        yield identity(name, "FULL" if BY_CODE in name else "DEFAULT")
