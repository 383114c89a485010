"""Small polls: no Spark task for them, and no new producer for each."""

import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.programs.polled_source import Polled, keys_of
from tests.support.programs.sqlite_source import execute, file_of

LONG_S: Final = 150.0  # a machine may be busy
MANY: Final = 12_000  # more than are read without Spark
POLLS: Final = 20
_HEAD: Final = struct.Struct("!qi")  # of a batch: its offset, the bytes that follow
_PRODUCER_AT: Final = 43


@pytest.fixture
def polled(tmp_path: Path, kafka: KafkaServer, topic_prefix: str) -> Iterator[Polled]:
    execute(
        file_of(tmp_path),
        "CREATE TABLE few (id INTEGER PRIMARY KEY);"
        "CREATE TABLE many (id INTEGER PRIMARY KEY);",
    )
    url = f"sqlite:///{file_of(tmp_path)}"
    sink = {"topic_partitions": 1}
    made = Polled(
        *(url, kafka.bootstrap, tmp_path, topic_prefix),
        tables={"few": {}, "many": {}},
        sink=sink,
    )
    with closing(made):
        yield made


def producer_ids(logs: Path, topic: str) -> set[int]:
    """Read them from the broker's own log of a topic with one partition."""
    found = set()
    for segment in (logs / f"{topic}-0").glob("*.log"):
        data = segment.read_bytes()
        at = 0
        while at + _HEAD.size < len(data):
            _, length = _HEAD.unpack_from(data, at)
            if not length:
                break
            found.add(struct.unpack_from("!q", data, at + _PRODUCER_AT)[0])
            at += _HEAD.size + length
    return found


def test_polls_use_the_producers_of_those_before_and_few_rows_no_spark(
    polled: Polled, kafka: KafkaServer, tmp_path: Path, topic_prefix: str
) -> None:
    if kafka.data is None:
        pytest.skip("the broker's log is not on this machine")
    file = file_of(tmp_path)
    waits = []
    with polled.reader() as reader:
        polled.start().until("polling", LONG_S)
        for key in range(1, POLLS + 1):
            execute(file, f"INSERT INTO few VALUES ({key})")  # noqa: S608
            began = time.monotonic()
            reader.until(lambda records, key=key: len(records) == key, LONG_S)  # type: ignore[misc]
            waits.append(time.monotonic() - began)
        assert keys_of(reader) == list(range(1, POLLS + 1))
        assert not polled.drivers()
        median_s = sorted(waits)[POLLS // 2]
        print(f"first row {waits[0]:.3f} s, median {median_s:.3f} s")  # noqa: T201
        assert len(producer_ids(kafka.data, f"{topic_prefix}legacy.few")) == 1

        with closing(sqlite3.connect(file)) as connection:
            for part in range(4):
                first = part * MANY + 1
                keys = ((key,) for key in range(first, first + MANY))
                with connection:
                    connection.executemany("INSERT INTO many VALUES (?)", keys)
                reader.count(POLLS + (part + 1) * MANY, LONG_S)
        assert polled.drivers()
        # one for each of Spark's workers, at most
        assert len(producer_ids(kafka.data, f"{topic_prefix}legacy.many")) <= 2
    assert polled.terminate() == 0
