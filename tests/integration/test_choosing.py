"""Which tables are captured, as PostgreSQL itself says which rows go out as whose."""

from collections.abc import Iterator

import pytest

from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from walstream.postgres import catalog
from walstream.postgres.connection import connect
from walstream.sources.postgres.backfill.publication_filter import published
from walstream.sources.postgres.table_choice import captured

TABLES = (
    "CREATE SCHEMA s; CREATE TABLE plain (id int); CREATE TABLE s.other (id int);"
    "CREATE UNLOGGED TABLE fleeting (id int);"
    "CREATE TABLE root (id int) PARTITION BY RANGE (id);"
    "CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (1) TO (2);"
    "CREATE TABLE branch PARTITION OF root DEFAULT PARTITION BY RANGE (id);"
    "CREATE TABLE s.twig PARTITION OF branch DEFAULT"
)
VIA_ROOT = "WITH (publish_via_partition_root = true)"


@pytest.fixture(scope="module")
def database(newest_postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(newest_postgres) as made:
        made.execute(TABLES)
        yield made


@pytest.mark.parametrize("via_root", ["", VIA_ROOT], ids=["leaves", "roots"])
@pytest.mark.parametrize(
    "whom",
    [
        "FOR TABLE plain, root",
        "FOR TABLE branch",
        "FOR TABLE leaf, s.other",
        "FOR TABLES IN SCHEMA s",
        "FOR TABLES IN SCHEMA public",
        "FOR ALL TABLES",
    ],
)
def test_what_is_captured_is_what_postgresql_publishes(
    database: Database, whom: str, via_root: str
) -> None:
    database.execute(f"CREATE PUBLICATION p {whom} {via_root}")
    try:
        with connect(database.dsn) as connection:
            found = captured(connection, catalog.tables(connection), "p")
            assert sorted(found) == published(connection, ["p"])
    finally:
        database.execute("DROP PUBLICATION p")
