"""Killed under a load of all kinds: each record is there once, in any format."""

import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Self

import psycopg
import pytest

from tests.fault.test_kill_cycles import kill_worker
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, Record

pytestmark = [pytest.mark.fault, pytest.mark.same_on_15]

_LONG = [pytest.mark.fault_long, pytest.mark.takes(200)]

_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
_KILLS = int(os.environ.get("WALSTREAM_TEST_KILLS") or 4)


class Mix:
    """Transactions of rows and messages, each of which is there once in the source."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._over = threading.Event()
        self.transactions = self.messages = self.rows = self.truncates = 0
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        choose = random.Random(_SEED)  # noqa: S311 - a test's load
        emit = "SELECT pg_logical_emit_message(true, 'm', %s)"
        with psycopg.connect(self._dsn) as connection:
            while not self._over.wait(0.003):
                rows = choose.choice([0, 1, 2, 2, 3, 40])
                if rows:
                    low = self.rows
                    self.rows += rows
                    connection.execute(
                        "INSERT INTO t SELECT i, 'row'"
                        " FROM generate_series(%s::int, %s::int) i",
                        (low, self.rows - 1),
                    )
                    if choose.random() < 0.5:
                        connection.execute("DELETE FROM t WHERE id = %s", (low,))
                if not rows or choose.random() < 0.3:
                    for _ in range(choose.randint(1, 3)):
                        connection.execute(emit, (str(self.messages),))
                        self.messages += 1
                if choose.random() < 0.05:
                    connection.execute("INSERT INTO u VALUES (1)")
                    connection.execute("TRUNCATE u")
                    self.truncates += 1
                connection.commit()
                self.transactions += 1


def plain(value: bytes | None) -> Any:
    return None if value is None else json.loads(value)


def timeless(value: Any) -> str:
    """Give a record's value without when it was written."""
    if isinstance(value, dict):
        found = value.get("payload", value)
        if isinstance(found, dict):
            value = {k: v for k, v in found.items() if not k.startswith("ts_")}
    return json.dumps(value, sort_keys=True)


def rows_of(table: str, wanted: int) -> Callable[[list[Record]], bool]:
    """Return whether so many records of a table are there, asked again and again."""
    looked = found = 0

    def are_there(records: list[Record]) -> bool:
        nonlocal looked, found
        for record in records[looked:]:
            found += record.topic.endswith(f".{table}")
        looked = len(records)
        return found >= wanted

    return are_there


def await_more(reader: Reader) -> None:
    there = reader.ends()
    wait_until(lambda: reader.ends() > there, 60, "more records are there")


@pytest.mark.parametrize("form", ["op", pytest.param("debezium", marks=_LONG)])
def test_kills_repeat_nothing_of_any_kind(
    form: str,
    database: Database,
    runs: Runs,
    kafka: KafkaServer,
    topic_prefix: str,
) -> None:
    print(f"seed {_SEED}")  # noqa: T201 - to replay a failure
    choose = random.Random(_SEED)  # noqa: S311 - a test's moments
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    database.execute("CREATE TABLE u (id int)")
    database.execute("ALTER TABLE u REPLICA IDENTITY FULL")
    sink = {
        "delivery": "transactional",
        "format": form,
        "topic": topic_prefix + "{schema}.{table}",
        "topic_partitions": 8,
        "tombstones": True,
        "on_truncate": "send",
        "txinfo": f"told_{topic_prefix}",
        "resolved": "100ms",
        "messages": {
            "prefixes": ["m"],
            "topic": f"messages_{topic_prefix}" + "{prefix}",
        },
    }
    if form == "debezium":
        sink["debezium"] = {"name": f"beats{topic_prefix}", "heartbeat": "100ms"}
        del sink["resolved"]
    walstream = runs(database.dsn, sink=sink)
    with (
        walstream,
        Reader(kafka.bootstrap, topic_prefix, plain) as reader,
        Reader(kafka.bootstrap, f"messages_{topic_prefix}", plain) as messages,
        Reader(kafka.bootstrap, f"told_{topic_prefix}", plain) as told,
    ):
        walstream.streaming()
        with Mix(database.dsn) as mix:
            for number in range(_KILLS):
                if number % 2:  # else none may live long enough to deliver anything
                    await_more(reader)
                time.sleep(choose.uniform(0.0, 2.0))
                if choose.random() < 0.5:
                    kill_worker(walstream.worker_pid())
                else:
                    walstream.kill()
                    walstream.start()
                if number % 50 == 49:  # else all of them are read in the end
                    for one in (reader, messages, told):
                        one.read()
            walstream.streaming()
            time.sleep(2.0)
        ((left,),) = database.fetch("SELECT count(*) FROM t")
        wanted = mix.rows + 2 * (mix.rows - int(str(left)))
        reader.until(rows_of("t", wanted), 90 + wanted / 2000)
        messages.count(mix.messages)
        assert walstream.terminate() == 0
        found = [one for one in reader.read() if one.topic.endswith(".t")]
        times = Counter((one.partition, one.key, timeless(one.op)) for one in found)
        assert [one for one, many in times.items() if many > 1] == []
        assert len(found) == wanted
        truncated = [one for one in reader.records if one.topic.endswith(".u")]
        texts = Counter((one.partition, timeless(one.op)) for one in truncated)
        assert [one for one, many in texts.items() if many > 1] == []
        assert Counter(str(one.op) for one in messages.read()).most_common(1)[0][1] == 1
        assert len(messages.records) == mix.messages
        marks = Counter(
            timeless(one.op) for one in told.read() if "resolved" not in str(one.op)
        )
        assert [one for one, many in marks.items() if many > 1] == []


@pytest.mark.fault_long
@pytest.mark.takes(200)
@pytest.mark.parametrize("form", ["op", "debezium"])
def test_kills_between_parts_repeat_nothing(  # noqa: PLR0913, PLR0917 - fixtures
    form: str,
    database: Database,
    runs: Runs,
    kafka: KafkaServer,
    own_kafka: OwnKafka,
    topic_prefix: str,
) -> None:
    """Another sink, which is away meanwhile, holds the state's position."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    broker = own_kafka()
    servers = {"bootstrap.servers": kafka.bootstrap, "transaction.timeout.ms": "2000"}
    sink: dict[str, Any] = {
        "delivery": "transactional",
        "format": form,
        "topic": topic_prefix + "{schema}.{table}",
        "topic_partitions": 8,
        "producer": servers,
        "txinfo": f"told_{topic_prefix}",
        "messages": {"prefixes": ["m"], "topic": f"messages_{topic_prefix}{{prefix}}"},
    }
    if form == "debezium":
        sink["debezium"] = {"name": f"beats{topic_prefix}", "heartbeat": "100ms"}
    other = {
        "topic": topic_prefix + "{schema}.{table}",
        "delivery": "transactional",
        "topic_partitions": 4,
        "producer": {**servers, "bootstrap.servers": broker.bootstrap},
    }
    walstream = runs(database.dsn, sink=sink, others={"other-one": other})
    rows, parts = 60_000, 4
    with (
        walstream,
        Reader(kafka.bootstrap, topic_prefix, plain) as reader,
        Reader(kafka.bootstrap, f"told_{topic_prefix}", plain) as told,
        Reader(broker.bootstrap, topic_prefix) as second,
    ):
        walstream.streaming()
        with psycopg.connect(database.dsn) as connection:
            for part in range(parts):
                connection.execute(
                    "INSERT INTO t SELECT i, repeat('row', 30)"
                    " FROM generate_series(%s::int, %s::int) i",
                    (part * rows, (part + 1) * rows - 1),
                )
                connection.execute("SELECT pg_logical_emit_message(true, 'm', 'x')")
        for _ in range(3):
            walstream.until("committed in parts", 60)
            time.sleep(0.3)
            walstream.kill()
            walstream.start()
        walstream.streaming()
        reader.until(lambda some: len(some) >= rows * parts, 120)
        database.execute("INSERT INTO t VALUES (-1, 'last')")
        reader.until(lambda some: len(some) > rows * parts, 60)
        second.until(lambda some: len(some) > rows * parts, 120)
        assert walstream.terminate() == 0
        assert len(reader.read()) == rows * parts + 1
        assert len({one.key for one in reader.records}) == rows * parts + 1
        assert len(second.read()) == rows * parts + 1
        assert len({one.name for one in second.records}) == rows * parts + 1
        marks = [timeless(one.op) for one in told.read()]
        assert len(marks) == (4 if form == "debezium" else 2)
