"""Tables and rows that walstream sees later than their WAL."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from tests.support.deadline import wait_until, within
from tests.support.fixtures.postgres import Database, OwnPostgres
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, in_order

pytestmark = pytest.mark.same_on_15

LONG = "0123456789" * 1000  # toasted: its column is EXTERNAL


def test_a_table_made_while_stopped_is_captured_from_the_next_start(
    database: Database, runs: Runs, reader: Reader
) -> None:
    walstream = runs(database.dsn).start().streaming()
    assert walstream.terminate() == 0
    database.execute("CREATE TABLE late (id int PRIMARY KEY)")
    database.execute("INSERT INTO late VALUES (1)")  # before it is published

    walstream.start().streaming()
    (added,) = walstream.said("table added to the publication")
    assert added["table"] == "public.late"
    assert added["lsn"]
    database.execute("INSERT INTO late VALUES (2)")

    assert [record.op.new for record in reader.count(1)] == [["2"]]


@contextmanager
def held_commit(database: Database, connection: psycopg.Connection) -> Iterator[None]:
    """Commit so that walstream reads it, and asks the catalog, before others see it."""
    # a commit that waits for a standby is in the WAL, but nobody sees it yet
    database.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    database.execute("SELECT pg_reload_conf()")
    show = "SHOW synchronous_standby_names"
    wait_until(lambda: database.fetch(show) == [("nobody",)], 10, "it is reloaded")
    yield
    with ThreadPoolExecutor(1) as thread:
        committed = thread.submit(connection.commit)
        sent = (
            "SELECT FROM pg_stat_replication, pg_stat_activity a WHERE sent_lsn >="
            " pg_current_wal_flush_lsn() AND a.wait_event = 'SyncRep'"
        )
        asks = (
            "SELECT FROM pg_stat_activity WHERE application_name = 'walstream'"
            " AND backend_type = 'client backend'"
        )
        wait_until(lambda: database.fetch(sent), 10, "the commit is streamed")
        # a short session may have come and gone
        within(lambda: database.fetch(asks), 0.5)
        assert not committed.done()
        database.execute("ALTER SYSTEM RESET synchronous_standby_names")
        database.execute("SELECT pg_reload_conf()")
        committed.result(30)


@pytest.mark.parametrize("version", [15, 18], ids=["pg15", "pg18"])
def test_a_key_change_is_read_only_once_its_transaction_is_visible(
    own_postgres: OwnPostgres, runs: Runs, reader: Reader, version: int
) -> None:
    database = Database(own_postgres(version))
    database.execute(
        "CREATE TABLE moved (id int PRIMARY KEY, n int, v text);"
        "ALTER TABLE moved ALTER v SET STORAGE EXTERNAL"
    )
    runs(database.dsn).start().streaming()
    database.execute("INSERT INTO moved VALUES (1, 1, %s)", LONG)
    reader.count(1)
    with psycopg.connect(database.dsn) as connection, held_commit(database, connection):
        connection.execute("UPDATE moved SET id = 2")
    assert reader.count(3)[-1].op.new == ["2", "1", LONG]


def test_the_key_of_a_table_made_by_the_same_transaction_is_its_primary_key(
    own_postgres: OwnPostgres, runs: Runs, reader: Reader
) -> None:
    database = Database(own_postgres(18))
    database.execute("CREATE PUBLICATION walstream FOR ALL TABLES")
    runs(database.dsn, source={"tables": []}).start().streaming()
    with psycopg.connect(database.dsn) as connection, held_commit(database, connection):
        connection.execute(
            "CREATE TABLE late (id int PRIMARY KEY, n int);"
            "ALTER TABLE late REPLICA IDENTITY FULL; INSERT INTO late VALUES (1, 5)"
        )
    assert reader.count(1)[0].key == b'["1"]'


@pytest.mark.fault_long
def test_a_new_table_is_captured_within_the_minute(
    database: Database, runs: Runs, reader: Reader
) -> None:
    walstream = runs(database.dsn).start().streaming()
    database.execute("CREATE TABLE late (id int PRIMARY KEY)")
    added = "table added to the publication"
    wait_until(lambda: walstream.said(added), 75, added)
    database.execute("INSERT INTO late VALUES (1)")
    assert [record.op.new for record in reader.count(1)] == [["1"]]
    assert in_order(reader.records) == reader.records
