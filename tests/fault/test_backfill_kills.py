"""Whatever of a backfill is killed, while a writer goes on: its end is the table."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import (
    Database,
    OwnPostgres,
    PostgresServer,
    temporary_database,
)
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.table_state import by_arrival
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.backfill import MORE, SPARK, agree, filled, load, settled
from tests.support.programs.walstream import Walstream

pytestmark = pytest.mark.fault
WALSTREAM = Path(sys.executable).with_name("walstream")


@pytest.fixture
def database(newest_postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(newest_postgres) as made:
        yield made


@pytest.fixture
def walstream(database: Database, runs: Runs) -> Walstream:
    return filled(database, runs)


@pytest.mark.fault_long
@pytest.mark.parametrize("stage", ["slot created", "backfill begins", "streaming"])
def test_killed_at_a_step_it_ends_at_the_table(
    stage: str, database: Database, walstream: Walstream, reader: Reader
) -> None:
    with load(database, seed=5) as writing:
        walstream.start().until(stage, 60)
        walstream.kill()
        writing.wait_for_more()
        walstream.start().streaming()
        writing.wait_for_more()
    agree(database, settled(database, walstream, reader))


@pytest.mark.fault_long
def test_killed_amid_rows_and_amid_catching_up_it_ends_at_the_table(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    with load(database, seed=6) as writing:
        walstream.start()
        reader.until(lambda records: records, 60)
        walstream.kill()
        writing.wait_for_more()
        walstream.start().until("catching up", 60)
        walstream.kill()
        writing.wait_for_more()
        walstream.start().until("backfill ended", 150)
        writing.wait_for_more()
    agree(database, settled(database, walstream, reader))


@pytest.mark.fault_long
@pytest.mark.takes(120)
def test_killed_on_a_cluster_it_fences_its_tasks_and_ends_at_the_table(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    walstream.top = {
        "spark": {**SPARK, "master": "local-cluster[2,1,1024]", "insecure": True}
    }
    with load(database, seed=8) as writing:
        walstream.start()
        executor = "CoarseGrainedExecutorBackend"
        wait_until(lambda: walstream.processes(executor), 90, "an executor runs")
        walstream.kill()
        writing.wait_for_more()
        walstream.start().until("tasks elsewhere are fenced", 60)
        walstream.until("catching up", 60).until("backfill ended", 120)
        assert len(walstream.said("tasks elsewhere are fenced")) == 2
        writing.wait_for_more()
    agree(database, settled(database, walstream, reader))


@pytest.mark.fault_long
@pytest.mark.parametrize(
    ("process", "number"),
    [
        ("org.apache.spark", signal.SIGKILL),
        ("org.apache.spark", signal.SIGTERM),
        ("pyspark.daemon", signal.SIGKILL),
        ("walstream.spark.driver", signal.SIGKILL),
    ],
)
def test_what_runs_for_it_is_killed_and_started_again(
    process: str,
    number: signal.Signals,
    database: Database,
    walstream: Walstream,
    reader: Reader,
) -> None:
    with load(database, seed=7) as writing:
        walstream.start()
        wait_until(lambda: walstream.processes(process), 60, "it runs")
        for one in walstream.processes(process):
            os.kill(one.pid, number)
        walstream.until("backfill ended", 150).streaming()
        writing.wait_for_more()
    agree(database, settled(database, walstream, reader))


@pytest.mark.fault_long
def test_a_truncated_table_is_read_again(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    walstream.start().until("backfill begins", 60)
    database.execute("TRUNCATE load; INSERT INTO load VALUES (7, 7, 'after')")
    walstream.until("backfill ended", 150)
    agree(database, settled(database, walstream, reader))


@pytest.mark.fault_long
def test_a_stop_ends_all_that_runs_for_it(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    walstream.start()
    wait_until(lambda: walstream.processes("org.apache.spark"), 60, "Spark runs")
    family = psutil.Process(walstream.pid).children(recursive=True)
    assert walstream.terminate() == 0
    wait_until(lambda: not any(map(_lives, family)), 10, "all of them ended")
    count = len(reader.read())
    walstream.start().until("backfill ended", 150)
    records = settled(database, walstream, reader)
    assert len(records) > count
    agree(database, records)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.fault_long
def test_a_table_whose_chunk_fails_is_given_up_and_the_others_stream(
    database: Database, runs: Runs, reader: Reader
) -> None:
    walstream = filled(database, runs, tables=[])
    database.execute(
        "CREATE TABLE broken (id int PRIMARY KEY);"
        "INSERT INTO broken VALUES (5);"
        # what nobody can evaluate for the row that is there
        "CREATE PUBLICATION walstream FOR TABLE load, small,"
        " broken WHERE (10 / (id - 5) > -100)"
    )
    walstream.start().until("backfill ended", 150)
    (given_up,) = walstream.said("table is skipped")
    assert given_up["table"] == "public.broken"
    assert "pages 0 to the end" in given_up["error"]
    assert "division by zero" in given_up["error"]
    database.execute("INSERT INTO broken VALUES (6)")
    reader.until(lambda records: any(r.op.table.name == "broken" for r in records))
    status = subprocess.run(
        [WALSTREAM, "status", "--json", "-c", walstream.configuration],
        capture_output=True,
        check=False,
    )
    (source,) = json.loads(status.stdout)["sources"]
    assert source["backfill"]["state"] == "incomplete"
    assert "walstream backfill --source app public.broken" in source["problems"][0]
    records = settled(database, walstream, reader)
    agree(database, [r for r in records if r.op.table.name != "broken"])


@pytest.mark.fault_long
def test_a_server_that_goes_away_costs_no_table(
    own_postgres: OwnPostgres, runs: Runs, reader: Reader
) -> None:
    server = own_postgres(18)
    with temporary_database(server) as database:
        walstream = filled(database, runs)
        walstream.start()
        reader.until(lambda records: records, 90)
        server.stop("immediate")
        server.start()
        walstream.until("backfill ended", 150)
        assert not walstream.said("table is skipped")
        agree(database, settled(database, walstream, reader))


@pytest.mark.fault_long
def test_a_table_that_is_exchanged_by_its_name_is_read_again(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    database.execute("CREATE TABLE other (LIKE load INCLUDING ALL)")
    walstream.start().until("backfill begins", 60)
    database.execute(
        "INSERT INTO other VALUES (1, 1, 'of the other');"
        " ALTER TABLE load RENAME TO former; ALTER TABLE other RENAME TO load;"
        " DROP TABLE former"
    )
    walstream.until("backfill ended", 120)
    records = settled(database, walstream, reader)
    assert ("public.load", b'["1"]') in by_arrival(records)


@pytest.mark.fault_long
def test_a_worker_that_is_told_to_stop_by_a_stranger_streams_again(
    walstream: Walstream,
) -> None:
    walstream.source = {**walstream.source, "backfill": "never"}
    walstream.start().streaming()
    os.kill(walstream.worker_pid(), signal.SIGTERM)
    walstream.until("worker ended, starting it again")
    wait_until(lambda: len(walstream.said("streaming")) > 1, 30, "it streams again")


@pytest.mark.fault_long
@pytest.mark.parametrize("who", ["driver", "worker", "all"])
def test_without_spark_who_is_killed_amid_rows_begins_again(
    who: str, database: Database, runs: Runs, reader: Reader
) -> None:
    walstream = filled(database, runs, spark=False)
    database.execute(MORE)
    with load(database, seed=12) as writing:
        walstream.start()
        reader.until(lambda records: records, 60)
        (driver,) = walstream.drivers()
        assert not walstream.said("backfill ended")
        if who == "all":
            walstream.kill()
            walstream.start()
        elif who == "worker":
            os.kill(walstream.worker_pid(), signal.SIGKILL)
        else:
            driver.kill()
        walstream.until("backfill ended", 60).streaming()
        writing.wait_for_more()
    agree(database, settled(database, walstream, reader))
