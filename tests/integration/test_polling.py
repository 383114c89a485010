"""Polling, with `walstream run` and `walstream poll`: SQLite, which needs no server.

One instance, with a table for each test, since a start of Spark takes seconds: of two
sources, one that polls all the time, and one that has to be asked.
"""

# ruff: noqa: S608 - SQL of constants

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Final

import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.polled_source import Polled, keys_of, rows_of, sql_source
from walstream.formats.row import decode, row_hash

TABLES: Final = """
CREATE TABLE types (id INTEGER PRIMARY KEY, name TEXT, at DATETIME, ok BOOLEAN,
    price NUMERIC(10, 2), body BLOB, note JSON);
CREATE TABLE disorder (id INTEGER PRIMARY KEY);
CREATE TABLE wide (id INTEGER PRIMARY KEY, v TEXT);
CREATE TABLE narrow (id INTEGER PRIMARY KEY);
CREATE TABLE seven (id INTEGER PRIMARY KEY, v TEXT);
"""
TYPES: Final = """
INSERT INTO types VALUES
    (1, 'é', '2020-01-02 03:04:05.678', 1, 12.5, x'00ff', '{"a": [1, null]}'),
    (2, 'no date', 'yesterday', 0, 'much', NULL, 'no json'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL);
"""


def execute(file: Path, script: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(script)


@dataclass(frozen=True)
class Shop:
    polled: Polled
    file: Path

    def execute(self, script: str) -> None:
        execute(self.file, script)

    def reader(self, table: str) -> Reader:
        """Read the topics of a table: of the one that all polls, else of the asked."""
        source = "asked" if table == "seven" else "legacy"
        name = f"{self.polled.prefix}{source}.{table}"
        return Reader(self.polled.bootstrap, name, decode)


@pytest.fixture(scope="module")
def shop(
    kafka: KafkaServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("shop")
    file = folder / "shop.db"
    execute(file, TABLES)
    url = f"sqlite:///{file}"
    seven = sql_source(url, {"seven": {"limit": 3}})
    polled = Polled(
        url,
        kafka.bootstrap,
        folder,
        f"test_{token_hex(6)}.",
        tables={name: {} for name in ("types", "disorder", "wide", "narrow")},
        others={"asked": {**seven, "poll_interval": "1h"}},
        sink={
            "topic_partitions": 1,
            "topic_config": {"max.message.bytes": 50_000},
        },
    )
    try:
        yield Shop(polled.start().polling(), file)
        assert polled.terminate() == 0
    finally:
        polled.close()


def test_rows_are_written_as_the_format_says(shop: Shop) -> None:
    shop.execute(TYPES)
    with shop.reader("types") as reader:
        reader.count(3)
        rows = {row.data["id"]: row for row in rows_of(reader)}
    assert rows[1].data == {
        "id": 1,
        "name": "é",
        "at": "2020-01-02T03:04:05.678000",
        "ok": True,
        "price": "12.50",
        "body": "AP8=",
        "note": {"a": [1, None]},
    }
    assert rows[2].data["at"] == "yesterday"  # no date of SQLite stalls the rest
    assert rows[2].data["note"] == "no json"
    for row in rows.values():
        assert (row.name, row.table) == ("legacy", "types")
        assert row.hash == row_hash(row.data)


def test_seven_rows_by_three_come_in_three_polls_of_an_instance_that_is_asked(
    shop: Shop,
) -> None:
    shop.polled.once("asked")  # its first poll, which nobody asks for, is over
    # written backwards and changed, so that no physical order is that of the keys
    for key in range(7, 0, -1):
        shop.execute(f"INSERT INTO seven VALUES ({key}, 'x')")
    shop.execute("UPDATE seven SET v = hex(randomblob(2000)) WHERE id % 2 = 0")
    with shop.reader("seven") as reader:
        for count in (3, 6, 7, 7):
            shop.polled.once("asked")
            reader.count(count)
        assert keys_of(reader) == [1, 2, 3, 4, 5, 6, 7]


def test_keys_that_come_out_of_order_are_not_missed(shop: Shop) -> None:
    shop.execute("INSERT INTO disorder VALUES (5)")
    with shop.reader("disorder") as reader:
        reader.count(1)
        for key in (3, 9, 1, 7, 8, 2):
            shop.execute(f"INSERT INTO disorder VALUES ({key})")
            reader.until(lambda _, key=key: key in keys_of(reader))  # type: ignore[misc]
        assert sorted(keys_of(reader)) == [1, 2, 3, 5, 7, 8, 9]


def test_a_row_that_no_topic_takes_holds_up_its_table_alone(shop: Shop) -> None:
    shop.execute(
        "INSERT INTO wide VALUES (1, 'a'), (2, hex(zeroblob(100000))), (3, 'c');"
        "INSERT INTO narrow VALUES (1), (2);"
    )
    with shop.reader("wide") as wide, shop.reader("narrow") as narrow:
        shop.polled.until("a row blocks its table")
        wide.count(1)
        narrow.count(2)
        shop.execute("UPDATE wide SET v = 'b' WHERE id = 2")
        wide.count(3)
    assert "000000" not in shop.polled.text


def test_a_poll_without_an_instance_goes_on_where_the_last_one_ended(
    kafka: KafkaServer, topic_prefix: str, tmp_path: Path
) -> None:
    file = tmp_path / "own.db"
    execute(file, "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)")
    polled = Polled(
        f"sqlite:///{file}", kafka.bootstrap, tmp_path, topic_prefix, tables={"t": {}}
    )
    with closing(polled), polled.reader() as reader:
        first = polled.once("-v").stderr
        assert "polled" in first
        assert "Spark starts" not in first  # not for a row
        reader.count(1)
        polled.once("-v")
        reader.count(1)
        lock = polled.state / "spark.lock"
        with lock.open("a") as held:
            fcntl.flock(
                held, fcntl.LOCK_SH
            )  # as a task does that nobody wants any more
            polled.start().until("waiting for tasks of an earlier job")
            assert not polled.said("polling")
        assert polled.polling().terminate() == 0
