"""A chunk's columns are those of its snapshot, or it is not read."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.support.fixtures.postgres import Database
from walstream.op import Table
from walstream.sources.postgres.backfill.chunk import (
    Chunk,
    ChunkRelation,
    KeyRange,
    Span,
    TableRewritten,
)
from walstream.sources.postgres.backfill.reader import (
    Connection,
    SnapshotDatabase,
    blocks,
    under_snapshot,
)

pytestmark = pytest.mark.same_on_15
TABLE = (
    "CREATE DOMAIN few AS int; CREATE DOMAIN fewer AS few;"
    "CREATE TABLE t (gone int, id bigint PRIMARY KEY, v varchar(9), d fewer, f int);"
    "ALTER TABLE t DROP gone; INSERT INTO t VALUES (1, 'x', 2, 1);"
    "CREATE VIEW seen AS SELECT * FROM t"
)
ALL_KEYS = KeyRange(("id",), None, None)


@contextmanager
def snapshot(database: Database) -> Iterator[Connection]:
    """See the database as it is now."""
    with psycopg.connect(database.dsn, autocommit=True) as holder:
        holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        row = holder.execute("SELECT pg_export_snapshot()").fetchone()
        assert row is not None
        with under_snapshot(SnapshotDatabase(database.dsn), row[0]) as connection:
            yield connection


def chunk(
    database: Database, name: str, span: Span = None, row_filter: str = ""
) -> Chunk:
    ((oid,),) = database.fetch(f"SELECT '{name}'::regclass::oid")
    table = Table("public", name, ("id", "v", "d"))
    return Chunk(1, ChunkRelation("public", name, oid, table, row_filter), span)


@pytest.mark.parametrize("name", ["t", "seen"])
def test_a_relation_that_is_as_it_was_is_read(database: Database, name: str) -> None:
    database.execute(TABLE)
    planned = chunk(database, name, row_filter="f > 0")
    with snapshot(database) as connection:
        database.execute("ALTER TABLE t ADD later int")
        assert list(blocks(connection, planned)) == [b"1\tx\t2\n"]


@pytest.mark.parametrize("change", ["RENAME f TO g", "DROP f CASCADE"])
def test_columns_that_are_not_read_may_change(database: Database, change: str) -> None:
    database.execute(TABLE)
    planned = chunk(database, "t")
    with snapshot(database) as connection:
        database.execute(f"ALTER TABLE t {change}")
        assert list(blocks(connection, planned)) == [b"1\tx\t2\n"]


def test_a_role_that_may_read_some_columns_reads_them(database: Database) -> None:
    role = f"reader_{database.name}"
    database.execute(
        f"{TABLE}; CREATE ROLE {role}; GRANT SELECT (id, v, d) ON t TO {role}"
    )
    planned = chunk(database, "t")
    try:
        with snapshot(database) as connection:
            connection.execute(f"SET ROLE {role}".encode())
            assert list(blocks(connection, planned)) == [b"1\tx\t2\n"]
    finally:
        database.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.mark.parametrize(
    ("change", "span", "row_filter"),
    [
        ("ALTER TABLE t RENAME v TO w; ALTER TABLE t ADD v varchar(9)", None, ""),
        ("ALTER TABLE t DROP v CASCADE; ALTER TABLE t ADD v varchar(9)", None, ""),
        ("ALTER TABLE t DROP v CASCADE", None, ""),
        ("DROP VIEW seen; ALTER TABLE t ALTER v TYPE text", None, ""),
        ("ALTER TABLE t RENAME f TO g; ALTER TABLE t ADD f int", None, "f > 0"),
        ("ALTER TABLE t RENAME f TO g", ALL_KEYS, ""),
        ("ALTER TABLE t RENAME TO u; CREATE TABLE t (LIKE u)", None, ""),
    ],
)
def test_other_columns_of_the_names_are_not_read(
    database: Database, change: str, span: Span, row_filter: str
) -> None:
    """COPY takes names as they are now, and under an old snapshot: nulls."""
    database.execute(TABLE)
    planned = chunk(database, "t", span, row_filter)
    with snapshot(database) as connection:
        database.execute(change)
        with pytest.raises(TableRewritten, match=r"'public\.t'"):
            next(blocks(connection, planned))
