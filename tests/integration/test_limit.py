"""A limit of a source's stream: held in bounds, stopped at once, nothing lost."""

import json
import time
from collections import Counter
from typing import Any

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, OwnPostgres
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream, toml

pytestmark = pytest.mark.same_on_15

_TABLE = "CREATE TABLE t (id int PRIMARY KEY, v text)"


def write(database: Database, low: int, high: int, each: int) -> None:
    """Insert rows from `low` on below `high`, so many in a transaction."""
    for first in range(low, high, each):
        last = min(first + each, high) - 1
        rows = f"generate_series({first}, {last}) i"
        database.execute(f"INSERT INTO t SELECT i, 'row ' || i FROM {rows}")  # noqa: S608 - numbers


def backlog(walstream: Walstream, database: Database, rows: int, each: int) -> None:
    """Let so many rows wait for a start."""
    walstream.start().streaming()
    assert walstream.terminate() == 0
    write(database, 0, rows, each)


def once(reader: Reader, rows: int) -> bool:
    """Tell whether all rows are there, each once."""
    found = Counter(one.new["id"] for one in reader.records)
    return found == Counter(map(str, range(rows))) or found == Counter(range(rows))


def status(walstream: Walstream) -> dict[str, Any]:
    found = json.loads(verb(walstream.configuration, "status", "--json").stdout)
    source: dict[str, Any] = found["sources"][0]
    return source


@pytest.mark.parametrize("delivery", ["idempotent", "transactional"])
@pytest.mark.parametrize("each", [10, 1500])
def test_a_backlog_is_read_no_faster_than_the_limit(
    delivery: str, each: int, database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    rows, limit = 1500, 200
    walstream = runs(
        database.dsn,
        source={"max_rows_per_second": limit},
        sink={"delivery": delivery},
    )
    backlog(walstream, database, rows, each)
    began = time.monotonic()
    with walstream:
        wait_until(
            lambda: status(walstream)["held_by"] == "max_rows_per_second", 30, "held"
        )
        reader.count(rows)
        took_s = time.monotonic() - began
        assert took_s >= (rows - limit) / limit
        wait_until(lambda: not status(walstream)["held_by"], 30, "it is held no more")
        assert walstream.terminate() == 0
    assert once(reader, rows)
    assert not walstream.said("committed in parts")


def test_a_row_of_more_than_a_second_passes_and_is_paid_for(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn, source={"max_bytes_per_second": "64KiB"})
    began = time.monotonic()
    with walstream:
        walstream.streaming()
        database.execute("INSERT INTO t VALUES (0, repeat('x', 400000))")
        write(database, 1, 3, 1)
        reader.count(3)
        assert time.monotonic() - began >= (400_000 - (64 << 10)) / (64 << 10)
    assert once(reader, 3)


@pytest.mark.parametrize("delivery", ["idempotent", "transactional"])
@pytest.mark.parametrize("each", [1, 400])
def test_a_stop_waits_for_no_limit(
    delivery: str, each: int, database: Database, runs: Runs, reader: Reader
) -> None:
    """The drain reads an open transaction to its end, at full speed."""
    database.execute(_TABLE)
    walstream = runs(
        database.dsn,
        source={"max_rows_per_second": 1},
        sink={"delivery": delivery},
    )
    backlog(walstream, database, 400, each)
    walstream.start().streaming()
    wait_until(lambda: status(walstream)["held_by"], 30, "held")
    assert walstream.terminate() == 0
    assert walstream.said("drained")
    walstream.source = {}
    with walstream:
        reader.count(400)
        assert walstream.terminate() == 0
    assert once(reader, 400)


def test_a_transaction_in_kafkas_passes_before_it_would_come_in_parts(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    producer = {"bootstrap.servers": runs.bootstrap, "transaction.timeout.ms": "20000"}
    walstream = runs(
        database.dsn,
        source={"max_rows_per_second": 20},
        sink={"delivery": "transactional", "producer": producer},
    )
    with walstream:
        walstream.streaming()
        write(database, 0, 3000, 3000)
        reader.count(3000)
        assert walstream.terminate() == 0
    assert not walstream.said("committed in parts")
    assert once(reader, 3000)


def test_a_growing_lag_is_told_and_a_server_that_stops_waits_for_no_limit(
    own_postgres: OwnPostgres, runs: Runs, reader: Reader
) -> None:
    server = own_postgres(18)
    database = Database(server)
    database.execute(_TABLE)
    walstream = runs(
        server.dsn(), source={"max_rows_per_second": 10, "slot": "limited"}
    )
    rows = 0
    with walstream:
        walstream.streaming()
        deadline = time.monotonic() + 90
        while not walstream.said("holds the stream while its lag grows"):
            write(database, rows, rows + 200, 20)
            rows += 200
            assert time.monotonic() < deadline, walstream.text
            time.sleep(0.2)
        server.stop("fast")
        server.start()
        walstream.until_said("streaming", 2)
        walstream.source = {"slot": "limited"}
        walstream.configuration.write_text(toml(walstream.document()), "utf-8")
        assert verb(walstream.configuration, "reload").returncode == 0
        # what the server heard of no more comes again
        reader.until(lambda some: len({one.new["id"] for one in some}) >= rows)
        assert walstream.terminate() == 0
    assert {str(one.new["id"]) for one in reader.read()} == set(map(str, range(rows)))
    said = walstream.said("holds the stream while its lag grows")
    assert len(said) == 1
