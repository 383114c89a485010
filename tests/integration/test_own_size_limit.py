"""A producer's own message.max.bytes is a limit of its topics, of whoever sends there.

librdkafka takes no larger record, and says the same of it as a broker does.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.polled_source import Polled
from tests.support.programs.sqlite_source import execute, file_of

OWN = 300_000
LARGE = "INSERT INTO t VALUES (1, repeat('x', 400000)); INSERT INTO t VALUES (2, 'v')"


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[Database]:
    """Make one on 18 alone: nothing here differs between the versions."""
    with temporary_database(postgres18) as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        yield fresh


def producer(bootstrap: str) -> dict[str, str]:
    return {"bootstrap.servers": bootstrap, "message.max.bytes": str(OWN)}


def test_a_record_over_it_stops_and_names_the_property(
    database: Database, runs: Runs
) -> None:
    sink = {"producer": producer(runs.bootstrap)}
    walstream = runs(database.dsn, sink=sink).start().streaming()
    database.execute(LARGE)
    own = "raise message.max.bytes among the sink's own producer properties"
    walstream.ends_with(3, "public.t", f"takes {OWN}", own)


@pytest.mark.parametrize("rows", ["streamed", "backfilled"])
def test_a_record_over_it_is_parked(
    database: Database, runs: Runs, topic_prefix: str, rows: str
) -> None:
    sink = {
        "producer": producer(runs.bootstrap),
        "on_too_large": f"{topic_prefix}parked",
    }
    walstream = runs(database.dsn, sink=sink)
    if rows == "backfilled":
        database.execute(LARGE)
        walstream.source = {"backfill": "initial"}
        walstream.start().streaming()
    else:
        walstream.start().streaming()
        database.execute(LARGE)
    with Reader(runs.bootstrap, topic_prefix, json.loads) as reader:
        records = reader.count(2)
    (parked,) = [one for one in records if one.topic.endswith("parked")]
    assert (parked.key, json.loads(parked.value)["limit"]) == (b'["1"]', OWN)
    assert walstream.running


def test_a_row_over_it_blocks_its_table(
    tmp_path: Path, kafka: KafkaServer, topic_prefix: str
) -> None:
    url = f"sqlite:///{file_of(tmp_path)}"
    sink = {"producer": producer(kafka.bootstrap)}
    execute(
        file_of(tmp_path),
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);"
        "INSERT INTO t VALUES (1, 'a'), (2, hex(zeroblob(200000)))",
    )
    polled = Polled(
        url, kafka.bootstrap, tmp_path, topic_prefix, sink=sink, tables={"t": {}}
    )
    try:
        polled.start().until("a row blocks its table")
        assert polled.said(f"takes {OWN}")
        assert polled.said("raise message.max.bytes among the sink's own producer")
        with polled.reader() as reader:
            reader.count(1)
    finally:
        polled.close()
