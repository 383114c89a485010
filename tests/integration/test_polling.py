"""Polling, with `walstream run` and `walstream poll`: SQLite, which needs no server."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fix_kafka import KafkaServer
from tests.polled import Polled, keys_of, rows_of
from walstream.formats.row import row_hash

SHOP = """
CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, at DATETIME, ok BOOLEAN,
    price NUMERIC(10, 2), body BLOB, note JSON);
INSERT INTO t VALUES
    (1, 'é', '2020-01-02 03:04:05.678', 1, 12.5, x'00ff', '{"a": [1, null]}'),
    (2, 'no date', 'yesterday', 0, 'much', NULL, 'no json'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL);
"""


def execute(file: Path, script: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(script)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


Making = Callable[..., Polled]


@pytest.fixture
def polled(
    kafka: KafkaServer, topic_prefix: str, tmp_path: Path, file: Path
) -> Iterator[Making]:
    made: list[Polled] = []

    def make(**options: Any) -> Polled:
        options.setdefault("tables", {"t": {}})
        one = Polled(
            f"sqlite:///{file}", kafka.bootstrap, tmp_path, topic_prefix, **options
        )
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


@contextmanager
def runs(polled: Polled, *flags: str) -> Iterator[Polled]:
    try:
        polled.start(*flags)
        yield polled.polling()
    finally:
        polled.close()


def test_rows_are_written_as_the_format_says(polled: Making, file: Path) -> None:
    execute(file, SHOP)
    polling = polled()
    polling.once()
    with polling.reader() as reader:
        reader.count(3)
        assert {record.topic for record in reader.records} == {
            f"{polling.prefix}legacy.t"
        }
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
        assert (row.name, row.table) == ("legacy", "t")
        assert row.hash == row_hash(row.data)


def test_seven_rows_by_three_come_in_three_polls_and_never_again(
    polled: Making, file: Path
) -> None:
    execute(file, "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
    # written backwards and changed, so that no physical order is that of the keys
    for key in range(7, 0, -1):
        execute(file, f"INSERT INTO t VALUES ({key}, 'x')")  # noqa: S608 - a number
    execute(file, "UPDATE t SET v = hex(randomblob(2000)) WHERE id % 2 = 0")
    polling = polled(tables={"t": {"limit": 3}}, sink={"topic_partitions": 1})
    with polling.reader() as reader:
        for count in (3, 6, 7, 7):
            polling.once()
            reader.count(count)
        assert keys_of(reader) == [1, 2, 3, 4, 5, 6, 7]


def test_keys_that_come_out_of_order_are_not_missed(polled: Making, file: Path) -> None:
    execute(file, "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (5)")
    polling = polled()
    with polling.reader() as reader, runs(polling):
        reader.count(1)
        for key in (3, 9, 1, 7, 8, 2):
            execute(file, f"INSERT INTO t VALUES ({key})")  # noqa: S608 - a number
            reader.until(lambda _, key=key: key in keys_of(reader))  # type: ignore[misc]
        assert polling.terminate() == 0
        assert sorted(keys_of(reader)) == [1, 2, 3, 5, 7, 8, 9]


def test_a_running_instance_polls_once_more_when_it_is_asked(
    polled: Making, file: Path
) -> None:
    execute(file, "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)")
    polling = polled(source={"poll_interval": "1h"})
    with polling.reader() as reader, runs(polling):
        reader.count(1)
        execute(file, "INSERT INTO t VALUES (2)")
        polling.once()
        reader.count(2)


def test_a_row_that_no_topic_takes_holds_up_its_table_alone(
    polled: Making, file: Path
) -> None:
    execute(
        file,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);"
        "INSERT INTO t VALUES (1, 'a'), (2, hex(zeroblob(100000))), (3, 'c');"
        "CREATE TABLE u (id INTEGER PRIMARY KEY); INSERT INTO u VALUES (1), (2);",
    )
    polling = polled(
        tables={"t": {}, "u": {}}, sink={"topic_config": {"max.message.bytes": 50_000}}
    )
    with polling.reader() as reader, runs(polling):
        polling.until("a row holds up its table")
        reader.count(3)
        execute(file, "UPDATE t SET v = 'b' WHERE id = 2")
        reader.count(5)
    assert "100000" not in polling.text
