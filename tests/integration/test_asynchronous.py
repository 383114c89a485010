"""With synchronous_commit = off a commit is seen before its WAL is on disk."""

from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, OwnPostgres
from walstream.lsn import Lsn, parse
from walstream.postgres import catalog
from walstream.postgres.connection import session
from walstream.testing.servers import LocalPostgres


@contextmanager
def unwritten(server: LocalPostgres) -> Iterator[None]:
    """Keep who writes WAL behind others' backs from doing so."""
    # it has its name some time after the server takes connections
    wait_until(lambda: writers(server), 30, "there is a WAL writer")
    (writer,) = writers(server)
    writer.suspend()
    try:
        yield
    finally:
        writer.resume()


def writers(server: LocalPostgres) -> list[psutil.Process]:
    children = psutil.Process(server.pid).children()
    return [child for child in children if "walwriter" in title(child)]


def title(process: psutil.Process) -> str:
    """Give none to a backend that ended since it was listed: any session's does."""
    try:
        return "".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def lsn(database: Database, which: str) -> Lsn:
    ((text,),) = database.fetch(f"SELECT pg_current_wal_{which}_lsn()::text")
    return parse(text)


@pytest.mark.parametrize("version", [15, 18])
def test_a_change_that_is_seen_before_it_is_on_disk_lies_below_the_end(
    own_postgres: OwnPostgres, version: int
) -> None:
    server = own_postgres(version, synchronous_commit="off", autovacuum="off")
    database = Database(server)
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with unwritten(server):
        database.execute("ALTER TABLE t REPLICA IDENTITY FULL")
        written = lsn(database, "insert")
        assert lsn(database, "flush") < written
        with session(database.dsn) as connection:
            found, end = catalog.tables_and_end(connection)
    assert found["public.t"].full
    assert end >= written
