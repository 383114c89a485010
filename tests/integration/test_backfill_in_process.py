"""A backfill of little: one process reads it, and needs neither Java nor Spark."""

import json
import os
from pathlib import Path

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.backfill import MORE, agree, filled, load, settled
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream
from walstream.op import Kind

pytestmark = pytest.mark.same_on_15
DRIVER = "walstream.spark.driver"
JVM = "org.apache.spark"


@pytest.fixture
def walstream(database: Database, runs: Runs) -> Walstream:
    return filled(database, runs, spark=False)


@pytest.fixture
def without_spark(tmp_path: Path) -> dict[str, str]:
    """Hide Java and pyspark."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    absent = "import sys\nsys.modules.update(pyspark=None, py4j=None)\n"
    (hidden / "sitecustomize.py").write_text(absent)
    return {
        "JAVA_HOME": "/nowhere",
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": f"{hidden}:{os.environ.get('PYTHONPATH', '')}",
    }


def test_rows_of_before_come_without_java_and_pyspark(
    database: Database,
    walstream: Walstream,
    without_spark: dict[str, str],
    reader: Reader,
) -> None:
    walstream.environment = without_spark
    with load(database, seed=11) as writing:
        walstream.start().until("backfill ended", 60).streaming()
        writing.wait_for_more()
    (begins,) = walstream.said("backfill begins")
    assert begins["by"] == "one process"
    assert not walstream.processes(JVM)
    records = settled(database, walstream, reader)
    agree(database, records)
    snapshot = [record for record in records if record.op.snapshot]
    assert {record.kind for record in snapshot} == {Kind.INSERT}
    assert len({record.op.lsn for record in snapshot}) == 1
    assert len({record.name for record in snapshot}) == len(snapshot) > 6000


def test_tables_as_large_as_min_size_are_left_to_spark_which_check_misses(
    database: Database,
    walstream: Walstream,
    without_spark: dict[str, str],
) -> None:
    ((size,),) = database.fetch(
        "SELECT sum(pg_table_size(oid)) FROM pg_class WHERE relname IN ('load','small')"
    )
    walstream.environment = without_spark
    walstream.top = {"spark": {"min_size": f"{size}B"}}
    walstream.start().ends_with(
        2, "pyspark is not installed", "pip install 'walstream[spark]'; or write"
    )
    assert not database.fetch("SELECT FROM pg_replication_slots")
    assert not database.fetch("SELECT FROM pg_publication")
    configuration = walstream.configuration
    checked = verb(configuration, "check", "--json", environment=without_spark)
    (source,) = json.loads(checked.stdout)["sources"]
    assert {"pyspark", "java"} <= {one["code"] for one in source["findings"]}
    # a vacuum meanwhile adds its maps to the files
    walstream.top = {"spark": {"min_size": f"{int(size) + (1 << 20)}B"}}
    walstream.start().until("backfill ended", 60)
    assert walstream.terminate() == 0


def test_a_stop_ends_what_is_read_and_the_next_start_goes_on(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    database.execute(MORE)
    walstream.start().until("backfill begins", 60)  # a reader would hear of it late
    wait_until(lambda: walstream.processes(DRIVER), 10, "it reads")
    (driver,) = walstream.processes(DRIVER)
    assert walstream.terminate() == 0
    assert not walstream.said("backfill ended")
    wait_until(lambda: not driver.is_running(), 10, "it ended")
    walstream.start().until("backfill ended", 60)
    agree(database, settled(database, walstream, reader))


def test_a_table_whose_chunk_fails_is_skipped_after_four_tries(
    database: Database, runs: Runs, reader: Reader
) -> None:
    walstream = filled(database, runs, spark=False, tables=[])
    database.execute(
        "CREATE TABLE broken (id int PRIMARY KEY); INSERT INTO broken VALUES (5);"
        # what nobody can evaluate for the row that is there
        "CREATE PUBLICATION walstream FOR TABLE load, small,"
        " broken WHERE (10 / (id - 5) > -100)"
    )
    walstream.start().until("backfill ended", 60)
    (skipped,) = walstream.said("table is skipped")
    assert skipped["table"] == "public.broken"
    assert "division by zero" in skipped["error"]
    records = settled(database, walstream, reader)
    agree(database, [r for r in records if r.op.table.name != "broken"])
