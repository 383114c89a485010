"""How often the server is asked while many tables are planned."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.support.fixtures.postgres import Database
from walstream.errors import PermissionLacking
from walstream.sources.postgres.backfill.plan import plan
from walstream.sources.postgres.backfill.publication_filter import (
    KeyedTable,
    NoSuchTable,
)
from walstream.sources.postgres.backfill.reader import SnapshotDatabase as Read
from walstream.sources.postgres.incremental.keyset_reader import KeysetReader

TABLES = 300


class Counting:
    """A connection that counts what it is asked."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self.statements = 0

    def execute(self, *query: Any) -> Any:
        self.statements += 1
        return self._connection.execute(*query)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.fixture
def counting(database: Database) -> Iterator[Counting]:
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute(
            "DO $$ BEGIN FOR n IN 1..300 LOOP EXECUTE format("
            "'CREATE TABLE t%s (id int PRIMARY KEY, n numeric)', n); END LOOP; END $$;"
            "CREATE TABLE root (id int) PARTITION BY RANGE (id);"
            "CREATE TABLE leaf_a PARTITION OF root FOR VALUES FROM (0) TO (9);"
            "CREATE TABLE leaf_b PARTITION OF root FOR VALUES FROM (9) TO (99);"
            "CREATE PUBLICATION walstream FOR TABLES IN SCHEMA public"
            " WITH (publish_via_partition_root)"
        )
        yield Counting(connection)


def wishes(count: int) -> list[KeyedTable]:
    names = [f"t{number}" for number in range(1, count + 1)]
    return [KeyedTable("public", name, ("id",), ("walstream",)) for name in names]


def test_many_tables_are_planned_with_the_queries_of_one(counting: Counting) -> None:
    asked = []
    for count in (1, TABLES):
        counting.statements = 0
        planned = plan(counting, wishes(count))  # type: ignore[arg-type]
        assert [chunk.number for chunk in planned.chunks] == list(range(1, count + 1))
        assert {chunk.title for chunk in planned.chunks} == {
            wish.full_name for wish in wishes(count)
        }
        assert not planned.refused
        asked.append(counting.statements)
    assert asked[0] == asked[1] <= 4


def test_each_table_has_its_own_leaves_and_its_own_refusal(
    counting: Counting, database: Database
) -> None:
    role = f"narrow_{database.name}"
    database.execute(
        f"CREATE ROLE {role}; GRANT SELECT ON t1, leaf_a, leaf_b TO {role};"
        f"GRANT SELECT (id) ON t2, t3 TO {role}; GRANT SELECT (n) ON t3 TO {role};"
        f"GRANT SELECT ON t4, t5 TO {role}; ALTER TABLE t5 ENABLE ROW LEVEL SECURITY"
    )
    try:
        counting.execute(f"SET ROLE {role}")
        names = ["t1", "t2", "t3", "root", "t5", "nowhere", "t6"]
        planned = plan(
            counting,  # type: ignore[arg-type]
            [KeyedTable("public", name, ("id",), ("walstream",)) for name in names],
        )
    finally:
        counting.execute("RESET ROLE")
        database.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
    read = {(one.title, one.relation.full_name) for one in planned.chunks}
    assert read == {
        ("public.t1", "public.t1"),
        ("public.t3", "public.t3"),
        ("public.root", "public.leaf_a"),
        ("public.root", "public.leaf_b"),
    }
    assert {name: type(error) for name, error in planned.refused.items()} == {
        "public.t2": PermissionLacking,
        "public.t5": PermissionLacking,
        "public.t6": PermissionLacking,
        "public.nowhere": NoSuchTable,
    }
    assert "row-level security" in str(planned.refused["public.t5"])
    assert f'GRANT SELECT ON "public"."t2" TO "{role}";' in (
        planned.refused["public.t2"].repair.sql
    )


def test_a_table_is_read_beside_the_stream_whatever_other_tables_there_are(
    database: Database,
) -> None:
    database.execute(
        'CREATE SCHEMA "a.b"; CREATE TABLE "a.b"."c.d" (id int PRIMARY KEY);'
        'INSERT INTO "a.b"."c.d" VALUES (1), (2); CREATE TABLE other (id int);'
        "CREATE PUBLICATION walstream FOR ALL TABLES"
    )
    reader = KeysetReader(Read(database.dsn), lambda: ["walstream"])
    with psycopg.connect(database.dsn) as holder:
        holder.execute("LOCK TABLE other")
        chunk = reader.read("a.b.c.d", None, (), 10)
    assert chunk.rows == [["1"], ["2"]]
    assert (chunk.table.schema, chunk.table.name) == ("a.b", "c.d")
