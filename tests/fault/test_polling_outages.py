"""A polled database that is away, and a stop amid a long catch-up."""

# ruff: noqa: S608 - SQL of constants

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.fix_kafka import KafkaServer
from tests.fix_mariadb import Mariadb, MariadbServer, OwnMariadb
from tests.polled import SOURCE, Polled, keys_of
from tests.reading import Reader
from tests.waiting import wait_until
from walstream import control
from walstream.local import LocalMariadb
from walstream.positions import LmdbPositions

pytestmark = pytest.mark.fault
ROWS: Final = 20_000
LIMIT: Final = 1000
MANY: Final = 220_000  # more than a range
LONGEST_S: Final = 90.0

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


def delivered(polling: Polled) -> int:
    """Give the position that was stored."""
    with LmdbPositions.beside(polling.state) as positions:
        document = positions and positions.read("poll/t")
    assert document
    return int(document["key"])


def state(polling: Polled) -> str:
    status = control.ask_status(polling.state.parent)
    assert status
    return str(status["sources"][SOURCE]["state"])


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
    write(database, 1, 10)
    server.stop()
    polling = polled(server)
    with polling.reader() as reader:
        polling.start().until("trying again")
        server.start()
        reader.count(10, LONGEST_S)
        (said,) = polling.said("trying again")
        assert f"{server.host}:{server.port}" in said["error"]
        assert server.password not in polling.text

        (spark,) = polling.processes("walstream.driver")
        server.kill()
        wait_until(lambda: state(polling) == "waiting", 30, "it notices")
        time.sleep(away_s)
        server.start()
        write(database, 11, 20)
        reader.count(20, LONGEST_S)
        assert polling.processes("walstream.driver") == [spark]

        write(database, 21, ROWS)
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
        assert polling.said("stopped before all was delivered")
        assert delivered(polling) < reader.ends()
        polling.start()
        wait_until(lambda: delivered(polling) == MANY, LONGEST_S, "all is read")
        reader.read()
        repeats = len(reader.records) - MANY
        assert set(keys_of(reader)) == set(range(1, MANY + 1))
        assert 0 < repeats <= 200_000
