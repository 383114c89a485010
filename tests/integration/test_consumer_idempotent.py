"""The idempotent consumer with real servers: each op takes effect exactly once."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from consumer.error import (
    BarrierTimeout,
    ForeignSource,
    HandlerFailed,
    PoisonRecord,
    TopicReplaced,
    TransactionEnded,
)
from consumer.handler import Fatal, Retry, Transaction
from consumer.idempotent import IdempotentConsumer
from consumer.lane import Place
from consumer.metrics import Measure
from consumer.op import Op, Record
from tests.fix_kafka import KafkaServer
from tests.fix_postgres import Database
from tests.producing import Feed, backfilled, insert, truncate
from tests.reading import TopicAdmin
from tests.waiting import wait_until
from walstream.op import Kind

TABLES = """
    CREATE TABLE item (id int, n bigint);
    CREATE TABLE applied (lsn numeric, seq_id numeric, partition int);
"""


def apply(tx: Transaction, op: Op) -> None:
    """Follow the source; count each op that takes effect."""
    if op.kind is Kind.TRUNCATE:
        tx.execute("DELETE FROM item")
    else:
        tx.execute("INSERT INTO item VALUES (%s, %s)", (op.new["id"], op.new["n"]))
    tx.execute(
        "INSERT INTO applied VALUES (%s, %s, %s)",
        (op.lsn, op.seq_id, op.record.partition),
    )


class Setting:
    """A topic, a database, and consumers of one group."""

    def __init__(self, kafka: KafkaServer, database: Database, topic: str) -> None:
        self.kafka = kafka
        self.database = database
        self.topic = topic
        self.group = f"g_{topic}"
        self.runs: list[Running] = []
        self.measures: dict[Measure, float] = dict.fromkeys(Measure, 0)

    def make(self, partitions: int = 1) -> Feed:
        TopicAdmin(self.kafka.bootstrap).create(self.topic, partitions)
        self.database.execute(TABLES)
        return Feed(self.kafka.bootstrap, self.topic)

    def consumer(self, handler: Any = apply, **options: Any) -> IdempotentConsumer:
        return IdempotentConsumer(
            handler,
            self.database.dsn,
            group=self.group,
            topics=[self.topic],
            kafka={"bootstrap.servers": self.kafka.bootstrap, "fetch.wait.max.ms": 10},
            metrics=self.measure,
            **options,
        )

    @contextmanager
    def running(self, handler: Any = apply, **options: Any) -> Iterator["Running"]:
        with self.consumer(handler, **options) as consumer:
            running = Running(consumer)
            self.runs.append(running)
            yield running
        running.join()

    def measure(self, what: Measure, value: float, _: str, __: int) -> None:
        self.measures[what] += value

    def failed(self) -> bool:
        for run in self.runs:
            if run.error is not None:
                raise run.error
        return False

    def count(self, table: str = "applied") -> int:
        (row,) = self.database.fetch(f"SELECT count(*) FROM {table}")  # noqa: S608
        found: int = row[0]
        return found

    def until(self, wanted: int, table: str = "applied") -> None:
        wait_until(
            lambda: self.failed() or self.count(table) >= wanted,
            20,
            f"{wanted} rows are in {table}",
        )
        assert self.count(table) == wanted

    def state(self, partition: int = 0) -> tuple[Any, ...]:
        (row,) = self.database.fetch(
            "SELECT lsn, seq_id, next_offset, topic_id, source"
            " FROM replication_consumer_state WHERE partition = %s",
            partition,
        )
        return row


class Running:
    """A consumer's run, in a thread."""

    def __init__(self, consumer: IdempotentConsumer) -> None:
        self.consumer = consumer
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.consumer.run()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def fails(self, kind: type[Any]) -> Any:
        """Wait for the error that stops it."""
        self._thread.join(20)
        assert not self._thread.is_alive()
        assert isinstance(self.error, kind), self.error
        error, self.error = self.error, None
        return error

    def join(self) -> None:
        self._thread.join(20)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error


@pytest.fixture
def setting(kafka: KafkaServer, database: Database, topic_prefix: str) -> Setting:
    return Setting(kafka, database, f"{topic_prefix}item")


def test_each_op_takes_effect_once_in_order(setting: Setting) -> None:
    feed = setting.make(partitions=2)
    for number in range(500):
        feed.insert(number, number % 2, source="1/db/0" if number < 2 else "")
    feed.flush()
    with setting.running() as running:
        setting.until(500)
        wait_until(
            lambda: set(running.consumer.lag().values()) == {0}, 10, "nothing lags"
        )
    assert setting.database.fetch(
        "SELECT count(DISTINCT (lsn, seq_id)) FROM applied"
    ) == [(500,)]
    lsn, seq_id, next_offset, topic_id, source = setting.state(1)
    assert (int(lsn), int(seq_id)) == (1000 + 8 * 499, 0)
    assert next_offset == 250
    assert topic_id
    assert source == "1/db/0"
