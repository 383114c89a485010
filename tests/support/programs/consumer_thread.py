"""Consumers in threads of the test, their topic and their database."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from consumer import IdempotentConsumer, Kind, Measure, Op, Place, Transaction
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.loads.op_record import Feed
from tests.support.oracles.topic_reader import TopicAdmin

TABLES = """
    CREATE TABLE item (id int, n bigint);
    CREATE TABLE applied (lsn numeric, seq_id numeric, partition int, at bigserial);
"""


def apply(tx: Transaction, op: Op) -> None:
    """Follow the source; count each op that takes effect."""
    if op.kind is Kind.TRUNCATE:
        tx.execute("DELETE FROM item")
    else:
        tx.execute("INSERT INTO item VALUES (%s, %s)", (op.new["id"], op.new["n"]))
    tx.execute(
        "INSERT INTO applied (lsn, seq_id, partition) VALUES (%s, %s, %s)",
        (op.lsn, op.seq_id, op.record.partition),
    )


class AppliedBatches:
    """Does what `apply` does, for many ops at once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def handle_batch(self, tx: Transaction, ops: Sequence[Op]) -> None:
        if ops[0].kind is Kind.TRUNCATE:
            (op,) = ops
            apply(tx, op)
            return
        with tx.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO item VALUES (%s, %s)",
                [(op.new["id"], op.new["n"]) for op in ops],
            )
            cursor.executemany(
                "INSERT INTO applied (lsn, seq_id, partition) VALUES (%s, %s, %s)",
                [(op.lsn, op.seq_id, op.record.partition) for op in ops],
            )
        self.sizes.append(len(ops))


class Setting:
    """A topic, a database, and consumers of one group."""

    def __init__(self, kafka: KafkaServer, database: Database, topic: str) -> None:
        self.kafka = kafka
        self.database = database
        self.topic = topic
        self.group = f"g_{topic}"
        self.runs: list[Running] = []
        self.sent = 0  # as far as the test counts
        self._counting = threading.Lock()
        self.measures: dict[Measure, float] = dict.fromkeys(Measure, 0)

    def make(self, partitions: int = 1) -> Feed:
        TopicAdmin(self.kafka.bootstrap).create(self.topic, partitions)
        self.database.execute(TABLES)
        self.feed = Feed(self.kafka.bootstrap, self.topic)
        return self.feed

    def consumer(self, handler: Any = apply, **options: Any) -> IdempotentConsumer:
        kafka = {"bootstrap.servers": self.kafka.bootstrap, "fetch.wait.max.ms": 10}
        return IdempotentConsumer(
            handler,
            self.database.dsn,
            group=self.group,
            topics=[self.topic],
            kafka=kafka | options.pop("kafka", {}),
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
        with self._counting:  # partitions are handled by a thread each
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
            60,
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


class Runnable(Protocol):
    def run(self) -> None: ...

    def lag(self) -> dict[Place, int]: ...


class Running:
    """A consumer's run, in a thread."""

    def __init__(self, consumer: Runnable) -> None:
        self.consumer = consumer
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.consumer.run()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def until_read(self, partitions: int) -> None:
        """Wait until nothing of what Kafka has is left to handle."""

        def read() -> bool:
            if self.error is not None:
                raise self.error
            lag = self.consumer.lag()
            return len(lag) == partitions and not any(lag.values())

        wait_until(read, 120, "all is handled")

    def fails(self, kind: type[Any] | tuple[type[Any], ...]) -> Any:
        """Wait for the error that stops it."""
        self._thread.join(60)
        assert not self._thread.is_alive()
        assert isinstance(self.error, kind), self.error
        error, self.error = self.error, None
        return error

    def join(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
