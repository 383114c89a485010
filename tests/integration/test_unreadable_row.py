"""A row that no later try of PostgreSQL can decode."""

import pytest

from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader

pytestmark = pytest.mark.same_on_15


def test_a_row_filter_that_fails_stops_with_its_place_and_is_not_tried_again(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    database.execute("ALTER TABLE t REPLICA IDENTITY FULL")
    database.execute(
        "CREATE PUBLICATION walstream FOR TABLE t WHERE (10 / v > 1)"
        " WITH (publish_via_partition_root = true)"
    )
    walstream = runs(database.dsn, source={"tables": []}).start().streaming()
    database.execute("INSERT INTO t VALUES (1, 2)")
    reader.count(1)
    database.execute("INSERT INTO t VALUES (2, 0)")
    walstream.ends_with(3, "division by zero (22012)", "positions reset app")
    assert not walstream.said("tries again")
    assert len(reader.read()) == 1
