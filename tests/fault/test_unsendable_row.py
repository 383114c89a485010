"""A row whose text is over 1 GB: PostgreSQL can write it, and never send it."""

import pytest

from tests.support.fixtures.postgres import Database, OwnPostgres
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader

pytestmark = [pytest.mark.fault_long, pytest.mark.takes(120)]
LARGE = "convert_to(repeat('x', 536870913), 'UTF8')"  # bytes; two characters each


def test_a_row_that_cannot_be_sent_stops_with_its_place_and_is_not_tried_again(
    own_postgres: OwnPostgres, runs: Runs, reader: Reader
) -> None:
    server = own_postgres(wal_level="logical")
    database = Database(server, "postgres")
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v bytea)")
    walstream = runs(database.dsn).start().streaming()
    database.execute("INSERT INTO t VALUES (1, 'a')")
    reader.count(1)
    database.execute(f"INSERT INTO t VALUES (2, {LARGE})")  # noqa: S608
    walstream.ends_with(3, "over 1 GB", "positions reset app", timeout_s=180)
    assert not walstream.said("tries again")
    assert len(reader.read()) == 1
