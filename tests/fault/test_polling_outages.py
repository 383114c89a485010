"""A polled database that is away, a stop amid a long catch-up, rows that kill."""

# ruff: noqa: S608 - SQL of constants

import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.mariadb import Mariadb, MariadbServer, OwnMariadb
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.polled_source import SOURCE, Polled, keys_of
from tests.support.programs.sqlite_source import execute, file_of
from walstream.sources.sql.progress import POLLED
from walstream.state.store import LmdbStore
from walstream.status.instance import running
from walstream.testing.servers import LocalMariadb

pytestmark = pytest.mark.fault
LIMIT: Final = 12_000  # rows of a poll: more than are read without Spark
ROWS: Final = 10 * LIMIT
MANY: Final = 220_000  # more than a range
LONGEST_S: Final = 150.0

Making = Callable[..., Polled]


@pytest.fixture
def polled(kafka: KafkaServer, topic_prefix: str, tmp_path: Path) -> Iterator[Making]:
    made: list[Polled] = []

    def make(server: MariadbServer, **options: Any) -> Polled:
        options.setdefault("tables", {"t": {"limit": LIMIT}})
        url = server.url("shop")
        made.append(Polled(url, kafka.bootstrap, tmp_path, topic_prefix, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


def write(database: Mariadb, first: int, last: int) -> None:
    database.execute(
        f"INSERT INTO t SELECT seq, REPEAT('v', 100) FROM seq_{first}_to_{last}"
    )


def shop(server: LocalMariadb) -> Mariadb:
    Mariadb(server).execute("CREATE DATABASE shop")
    database = Mariadb(server, "shop")
    database.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v TEXT)")
    return database


def delivered(polling: Polled, table: str = "t") -> int:
    """Give the position that was stored; 0 before there is one."""
    with LmdbStore.open_read_only(polling.state) as positions:
        document = POLLED.of(table).read(positions) if positions else None
    return (document.key if document else None) or 0


def state(polling: Polled) -> str:
    instance = running(polling.state.parent)
    assert instance
    return instance.sources[SOURCE].report.state


def stop_amid_rows(polling: Polled, reader: Reader) -> None:
    before = reader.ends()
    wait_until(lambda: reader.ends() > before, LONGEST_S, "it catches up")
    assert polling.terminate() == 0


@pytest.mark.parametrize("away_s", [0, pytest.param(25, marks=pytest.mark.fault_long)])
def test_a_database_that_is_away_is_waited_for_and_a_stop_repeats_nothing(
    away_s: float, own_mariadb: OwnMariadb, polled: Making
) -> None:
    server = own_mariadb()
    database = shop(server)
    write(database, 1, LIMIT)
    server.stop()
    polling = polled(server)
    with polling.reader() as reader:
        polling.start().until("trying again")
        server.start()
        reader.count(LIMIT, LONGEST_S)
        (said,) = polling.said("trying again")
        assert f"{server.host}:{server.port}" in said["error"]
        assert server.password not in polling.text

        (spark,) = polling.drivers()
        server.kill()
        wait_until(lambda: state(polling) == "waiting", 30, "it notices")
        time.sleep(away_s)
        server.start()
        write(database, LIMIT + 1, LIMIT + 10)
        reader.count(LIMIT + 10, LONGEST_S)
        assert polling.drivers() == [spark]

        write(database, LIMIT + 11, ROWS)
        stop_amid_rows(polling, reader)
        assert polling.said("drained")
        position = delivered(polling)
        assert position < ROWS
        reader.read()
        assert keys_of(reader) == list(range(1, position + 1))


@pytest.mark.fault_long
def test_a_range_that_a_stop_cuts_short_is_told_and_comes_again(
    own_mariadb: OwnMariadb, polled: Making
) -> None:
    server = own_mariadb()
    database = shop(server)
    write(database, 1, MANY)
    polling = polled(server, tables={"t": {}}, top={"shutdown_timeout": "500ms"})
    with polling.reader() as reader:
        polling.start()
        stop_amid_rows(polling, reader)
        assert polling.said("stopped before everything was delivered")
        assert delivered(polling) < reader.ends()
        polling.start()
        wait_until(lambda: delivered(polling) == MANY, LONGEST_S, "all is read")
        reader.read()
        repeats = len(reader.records) - MANY
        assert set(keys_of(reader)) == set(range(1, MANY + 1))
        assert 0 < repeats <= 200_000


def test_rows_that_kill_their_reader_keep_their_table_alone_waiting(
    kafka: KafkaServer, topic_prefix: str, tmp_path: Path
) -> None:
    """Spark's Python workers are killed as long as they read; few rows need none."""
    file = file_of(tmp_path)
    execute(
        file,
        "CREATE TABLE few (id INTEGER PRIMARY KEY);"
        "CREATE TABLE many (id INTEGER PRIMARY KEY);"
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        f" WHERE i < {LIMIT}) INSERT INTO many SELECT i FROM n;",
    )
    polling = Polled(
        *(f"sqlite:///{file}", kafka.bootstrap, tmp_path, topic_prefix),
        tables={"few": {}, "many": {}},
    )
    with closing(polling), polling.reader() as reader:
        polling.start()
        killed = 0
        deadline = time.monotonic() + LONGEST_S
        while not polling.said("a table is not polled"):
            assert time.monotonic() < deadline, polling.text
            daemons = polling.processes("pyspark.daemon")
            parents = {one.pid for one in daemons}
            for one in daemons:
                with suppress(psutil.NoSuchProcess):  # it ended since it was listed
                    if one.ppid() in parents:
                        one.kill()
                        killed += 1
            time.sleep(0.01)
        assert killed
        (said, *_) = polling.said("a table is not polled")
        assert said["table"] == "many"
        execute(file, "INSERT INTO few VALUES (1)")
        wait_until(lambda: delivered(polling, "few") == 1, LONGEST_S, "few goes on")
        assert state(polling) == "polling"
        # who was killed may have sent some, which come again
        reader.until(
            lambda records: len({(r.topic, r.key) for r in records}) == LIMIT + 1,
            LONGEST_S,
        )
        assert len(polling.said("polling")) == 1
        polling.until("the table is polled again")
        assert polling.terminate() == 0
