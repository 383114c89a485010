"""A publication that goes away: nothing that it kept from us is confirmed."""

from collections.abc import Iterator

import pytest

from tests.fix_postgres import Database, PostgresServer, temporary_database
from tests.fix_walstream import Runs
from tests.reading import Reader
from walstream.lsn import parse

CREATE = (
    "CREATE PUBLICATION walstream FOR TABLE t WITH (publish_via_partition_root = true)"
)


@pytest.fixture
def database18(postgres18: PostgresServer) -> Iterator[Database]:
    """Make one on 18 alone: the watch looks at both alike, and is slow."""
    with temporary_database(postgres18) as fresh:
        yield fresh


def lsn(database: Database, query: str) -> int:
    return parse(database.fetch(query)[0][0])


def confirmed(database: Database) -> int:
    return lsn(
        database,
        "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
        " WHERE slot_name = current_database()",
    )


@pytest.mark.parametrize("again", [False, True], ids=["dropped", "recreated"])
@pytest.mark.parametrize("how", ["live", "backlog"])
def test_nothing_past_a_lost_publication_is_confirmed(
    database: Database, runs: Runs, reader: Reader, how: str, again: bool
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    walstream = runs(database.dsn).start().streaming()
    database.execute("INSERT INTO t VALUES (1)")
    reader.count(1)
    if how == "backlog":
        assert walstream.terminate() == 0

    database.execute("DROP PUBLICATION walstream")
    before = lsn(database, "SELECT pg_current_wal_insert_lsn()::text")
    database.execute("INSERT INTO t VALUES (2)")
    if again:
        database.execute(CREATE)
        database.execute("INSERT INTO t VALUES (3)")
    if how == "backlog":
        walstream.start()

    walstream.ends_with(3, "publication", "walstream positions reset app")
    assert confirmed(database) <= before
    # nor does the next start go on
    walstream.start().ends_with(3, "publication", "walstream positions reset")
    assert confirmed(database) <= before
    assert [r.op.new for r in reader.read()] in ([["1"]], [["1"], ["3"]])


def test_a_publication_that_no_longer_publishes_all_is_a_gap(
    database18: Database, runs: Runs
) -> None:
    database18.execute("CREATE TABLE t (id int PRIMARY KEY)")
    walstream = runs(database18.dsn).start().streaming()
    database18.execute("ALTER PUBLICATION walstream SET (publish = 'insert')")
    walstream.ends_with(3, "no longer publishes", "'delete'", "walstream positions")


def test_a_table_that_left_the_publication_is_a_gap(
    database18: Database, runs: Runs
) -> None:
    database18.execute("CREATE TABLE t (id int PRIMARY KEY)")
    walstream = runs(database18.dsn).start().streaming()
    database18.execute("ALTER PUBLICATION walstream DROP TABLE t")
    walstream.ends_with(3, "'public.t' was taken out", "walstream positions reset")
    walstream.start().ends_with(3, "'public.t' was taken out")
