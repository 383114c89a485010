"""A strict sink: its readers never meet a table or an old row that they do not know."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.operator import Operator
from tests.support.programs.verb import verb


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[Database]:
    """Make one on 18 alone: nothing here differs between the versions."""
    with temporary_database(postgres18) as fresh:
        fresh.execute(
            "CREATE TABLE t (id int PRIMARY KEY, v text);"
            "CREATE TABLE other (id int PRIMARY KEY)"
        )
        yield fresh


def test_every_table_is_mapped_and_full_before_a_run_and_in_it(
    database: Database, runs: Runs, reader: Reader, tmp_path: Path
) -> None:
    topics = {"*.t": {"name": f"{runs.prefix}mapped"}}
    strict = {"strict": True, "on_truncate": "stop", "topics": topics}
    walstream = runs(database.dsn, sink=strict)
    operator = Operator(tmp_path / "operator")
    report = operator.check(walstream)
    found = [one for one in report["sources"][0]["findings"] if one["code"] == "strict"]
    assert sorted(one["subject"] for one in found) == [
        "table public.other",
        "table public.other",
        "table public.t",
    ]
    assert "'public.other' is published and has no mapping" in " ".join(
        one["what"] for one in found
    )
    walstream.start().ends_with(2, "REPLICA IDENTITY FULL")

    for one in found:
        if one["repair"]["sql"]:
            database.execute(one["repair"]["sql"])

    walstream.source = {"tables": ["public.t"]}
    assert operator.check(walstream)["ok"]
    walstream.start().streaming()
    database.execute("INSERT INTO t VALUES (1, 'x')")
    database.execute("UPDATE t SET v = 'y'")
    insert, update = reader.count(2)
    assert insert.topic == f"{runs.prefix}mapped"
    assert update.op.old == ["1", "x"]

    database.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT")
    database.execute("UPDATE t SET v = 'z'")
    walstream.ends_with(3, "'public.t'", "strict = false lets this one pass")
    reader.count(2)


def test_rows_come_to_its_readers_in_the_order_of_their_positions(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(
        "DROP TABLE other; ALTER TABLE t REPLICA IDENTITY FULL;"
        "INSERT INTO t SELECT i, 'x' FROM generate_series(1, 3000) i"
    )
    strict = {
        "strict": True,
        "on_truncate": "stop",
        "topics": {"*.t": {"name": f"{runs.prefix}mapped"}},
    }
    walstream = runs(database.dsn, sink=strict, source={"tables": ["public.t"]})
    walstream.start().streaming_said()
    emptied = verb(walstream.configuration, "backfill", "public.t", "--replace")
    assert emptied.returncode == 2
    assert "--replace sends a Truncate to sinks.kafka" in emptied.stderr

    asked = verb(walstream.configuration, "backfill", "public.t", "--wait")
    assert asked.returncode == 0, asked.stderr
    found = reader.count(3000)
    positions: dict[int, list[tuple[int, int]]] = {}
    for record in found:
        positions.setdefault(record.partition, []).append(record.name)
    assert all(sorted(set(one)) == one for one in positions.values())

    assert walstream.terminate() == 0
    by_spark = verb(walstream.configuration, "backfill", "public.t")
    assert by_spark.returncode == 2
    assert "Spark sends rows in any order" in by_spark.stderr

    database.execute("TRUNCATE t")
    walstream.start().ends_with(3, "on_truncate is 'stop'")
    assert len(reader.read()) == 3000
