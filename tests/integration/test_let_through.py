"""What publications let through of some tables: as PostgreSQL's own view has it."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.fixtures.postgres import Database
from walstream.sources.postgres.backfill.publication_filter import (
    KeyedTable,
    let_through,
    let_through_of,
)

SCHEMA = """
CREATE SCHEMA other;
CREATE TABLE plain (id int PRIMARY KEY, n int, g int GENERATED ALWAYS AS (n) STORED);
CREATE TABLE gone (id int, was int, n int);
ALTER TABLE gone DROP COLUMN was;
CREATE UNLOGGED TABLE fleeting (id int);
CREATE VIEW shown AS SELECT 1 AS id;
CREATE TABLE root (id int, n int) PARTITION BY RANGE (id);
CREATE TABLE other.leaf PARTITION OF root FOR VALUES FROM (0) TO (9);
CREATE TABLE branch PARTITION OF root FOR VALUES FROM (9) TO (99)
  PARTITION BY RANGE (id);
CREATE TABLE twig PARTITION OF branch FOR VALUES FROM (9) TO (50);
CREATE TABLE other.twig PARTITION OF branch FOR VALUES FROM (50) TO (99);
CREATE TABLE parent (id int);
CREATE TABLE child () INHERITS (parent);
"""
PUBLICATIONS = {
    "every": "FOR ALL TABLES",
    "public_one": "FOR TABLES IN SCHEMA public",
    "other_one": "FOR TABLES IN SCHEMA other",
    "two_schemas": "FOR TABLES IN SCHEMA public, other",
    "named": "FOR TABLE plain (id, n), gone WHERE (id > 3), ONLY parent",
    "listed": "FOR TABLE gone (id), parent, plain (id) WHERE (id <> 2)",
    "rooted": "FOR TABLE root, twig, plain",
    "branched": "FOR TABLE branch, other.twig (id, n)",
    "leafed": "FOR TABLE twig, TABLES IN SCHEMA other",
}
ROOTED = {  # where roots publish alone
    "narrow": "FOR TABLE root (id), other.leaf, twig (id, n)",
    "filtered": "FOR TABLE root WHERE (id > 1), twig WHERE (id < 20)",
}


@pytest.fixture
def connection(
    database: Database,
) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(database.dsn, autocommit=True) as opened:
        opened.execute(SCHEMA)
        for name, what in PUBLICATIONS.items():
            opened.execute(f"CREATE PUBLICATION {name} {what}")
        for name, what in {**PUBLICATIONS, **ROOTED}.items():
            opened.execute(
                f"CREATE PUBLICATION {name}_root {what}"
                " WITH (publish_via_partition_root, publish = 'update, delete')"
            )
        if opened.info.server_version >= 180000:
            for name in ("every", "listed", "public_one"):
                opened.execute(
                    f"CREATE PUBLICATION {name}_generated {PUBLICATIONS[name]}"
                    " WITH (publish_generated_columns = stored)"
                )
        yield opened


def test_it_is_what_the_view_says_of_each_publication(
    connection: psycopg.Connection[tuple[object, ...]],
) -> None:
    places = connection.execute(
        "SELECT relnamespace::regnamespace::text, relname::text FROM pg_class"
        " WHERE relnamespace IN ('public'::regnamespace, 'other'::regnamespace)"
    ).fetchall()
    names = connection.execute("SELECT pubname::text FROM pg_publication").fetchall()
    assert len(names) >= 2 * len(PUBLICATIONS)
    assert len(places) >= 10
    for (name,) in [*names, ("nobody",)]:
        wanted = [
            KeyedTable(str(schema), str(table), publications=(str(name),))
            for schema, table in places
        ]
        assert let_through_of(connection, wanted) == let_through(
            connection, [str(name)]
        ), name


def test_of_a_table_by_several_publications_all_are_told(
    connection: psycopg.Connection[tuple[object, ...]],
) -> None:
    names = ("every", "listed", "named_root")
    wanted = KeyedTable("public", "plain", publications=names)
    found = let_through_of(connection, [wanted])
    assert found == {
        key: rows
        for key, rows in let_through(connection, names).items()
        if key == ("public", "plain")
    }


def test_no_other_table_s_lock_is_waited_for(
    connection: psycopg.Connection[tuple[object, ...]], database: Database
) -> None:
    with psycopg.connect(database.dsn) as holder:
        holder.execute("LOCK TABLE gone")
        connection.execute("SET lock_timeout = '100ms'")
        wanted = KeyedTable("public", "plain", publications=("every",))
        assert let_through_of(connection, [wanted])
