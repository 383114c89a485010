"""Walstream is no synchronous standby, unless that is meant: commits would hang."""

import threading
from collections.abc import Iterator

import pytest

from tests.integration.test_beside import status
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import OwnKafka
from tests.support.fixtures.postgres import Database, OwnPostgres
from tests.support.fixtures.walstream import Runs
from tests.support.programs.inspection import look
from walstream.testing.servers import LocalPostgres

WAITS = "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def name_standbys(database: Database, names: str) -> None:
    database.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    database.execute("SELECT pg_reload_conf()")
    shown = "SHOW synchronous_standby_names"
    wait_until(lambda: database.fetch(shown) == [(names,)], 10, "it is reloaded")


@pytest.fixture(params=[15, 18], ids=["pg15", "pg18"])
def server(own_postgres: OwnPostgres, request: pytest.FixtureRequest) -> LocalPostgres:
    return own_postgres(request.param, wal_level="logical")


@pytest.fixture
def database(server: LocalPostgres) -> Iterator[Database]:
    made = Database(server, "postgres")
    made.execute("CREATE TABLE t (id int PRIMARY KEY)")
    yield made
    name_standbys(made, "")


@pytest.mark.same_on_15
def test_it_refuses_to_hold_up_commits_and_says_when_it_comes_to_that(
    database: Database, runs: Runs, own_kafka: OwnKafka
) -> None:
    kafka = own_kafka()
    walstream = runs(database.dsn, bootstrap=kafka.bootstrap)
    walstream.start().streaming()
    name_standbys(database, "*")
    walstream.until("commits would wait for Kafka")
    wait_until(lambda: status(walstream)["exit_code"] == 5, 10, "status says so")
    (source,) = status(walstream)["sources"]
    assert any("synchronous_standby_names = '*'" in one for one in source["problems"])
    assert source["slot"]["synchronous"]

    # what it is about: Kafka is frozen, and a COMMIT does not return
    kafka.freeze()
    returned = threading.Event()

    def commit() -> None:
        database.execute("INSERT INTO t VALUES (1)")
        returned.set()

    committing = threading.Thread(target=commit)
    committing.start()
    wait_until(lambda: database.fetch(WAITS), 15, "the COMMIT waits")
    assert not returned.is_set()
    kafka.thaw()
    committing.join(60)
    assert returned.is_set()
    assert walstream.terminate() == 0

    (finding,) = [
        one for one in look(database.dsn).findings if one.code == "synchronous-standby"
    ]
    assert finding.exit_code == 2
    walstream.start().ends_with(2, "synchronous_standby_names = '*'", "allow_synchro")

    name_standbys(database, "ANY 1 (node1)")
    walstream.start().until("streaming")
