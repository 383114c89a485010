"""Spark for the tests: one of two cores for all of them, with an event log.

WALSTREAM_TEST_SPARK_MASTER names another one, of two cores too.

`backfills` makes chunk jobs of a test's database, as a source and a sink would.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.fix_kafka import KafkaServer
from tests.reading import TopicAdmin
from walstream.config import Config
from walstream.kafka.topic import Topic
from walstream.postgres import catalog
from walstream.sources.postgres.backfill import plan
from walstream.sources.postgres.backfill.chunk import Chunk
from walstream.sources.postgres.backfill.task import ChunkTask
from walstream.sources.postgres.backfill.task_factory import (
    Snapshot,
    chunk_task,
    wanted,
)
from walstream.spark import session
from walstream.spark.leash import Leash
from walstream.spark.outcome import ChunkDone
from walstream.spark.session import Spark

MASTER = os.environ.get("WALSTREAM_TEST_SPARK_MASTER", "local[2,4]")
LSN = 28_318_000
HEADER = b"1/test/0"
LOCAL = session.slots(MASTER) is not None


@dataclass(frozen=True)
class OwnSpark:
    spark: Spark
    events: Path  # folder of the event log


@pytest.fixture(scope="session")
def own_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnSpark]:
    events = tmp_path_factory.mktemp("spark-events")
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    spark = session.start(session.Settings(MASTER, conf))
    yield OwnSpark(spark, events)
    spark.stop()


@pytest.fixture(scope="session")
def spark(own_spark: OwnSpark) -> Spark:
    return own_spark.spark


@dataclass
class Backfill:
    """One database's chunks, and the topics that they go to."""

    dsn: str
    bootstrap: str
    prefix: str
    partitions: int = 3
    topic_config: Mapping[str, str] = field(default_factory=dict)
    sink: Mapping[str, Any] = field(default_factory=dict)
    publications: tuple[str, ...] = ("walstream",)
    _topics: dict[str, Topic] = field(default_factory=dict)

    @contextmanager
    def holding(self) -> Iterator[str]:
        """Export a snapshot, and keep it."""
        with psycopg.connect(self.dsn, autocommit=True) as holder:
            holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            row = holder.execute("SELECT pg_export_snapshot()").fetchone()
            assert row is not None
            yield row[0]

    def plan(
        self, *tables: str, by_key: bool = False, chunk_bytes: int = plan.CHUNK_BYTES
    ) -> list[Chunk]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            facts = catalog.tables(connection)
            wishes = [
                wanted(facts[name], self.publications, by_key=by_key) for name in tables
            ]
            planned = plan.plan(connection, wishes, chunk_bytes=chunk_bytes)
        for error in planned.refused.values():
            raise error
        return planned.chunks

    def task(
        self,
        snapshot: str,
        chunks: list[Chunk],
        leash: Leash | None = None,
        *,
        elsewhere: bool = not LOCAL,
    ) -> ChunkTask:
        """Create the topics of these chunks; make what sends to them."""
        for chunk in chunks:
            table = chunk.relation.table.full_name
            self._create(f"{self.prefix}{table}")
        config = Config.model_validate(
            {
                "sources": {
                    "app": {"kind": "postgres", "dsn": self.dsn, "sinks": ["k"]}
                },
                "sinks": {
                    "k": {
                        "kind": "kafka",
                        "topic": self.prefix + "{schema}.{table}",
                        "producer": {"bootstrap.servers": self.bootstrap},
                        **self.sink,
                    }
                },
            }
        )
        return chunk_task(
            config,
            "app",
            Snapshot(snapshot, LSN, HEADER),
            {"k": self._topics},
            None if elsewhere else leash or Leash.of_this_process(),
        )

    def _create(self, name: str) -> None:
        if name not in self._topics:
            admin = TopicAdmin(self.bootstrap)
            admin.create(name, self.partitions, **self.topic_config)
            limit = int(self.topic_config.get("max_message_bytes", 1_048_588))
            self._topics[name] = Topic(name, "id", self.partitions, limit)

    def run(self, spark: Spark, *tables: str, **how: Any) -> list[ChunkDone]:
        """Backfill tables under a snapshot of their own."""
        from walstream.spark import jobs as chunks  # noqa: PLC0415 - Spark is loaded by now

        done: list[ChunkDone] = []
        with self.holding() as snapshot:
            planned = self.plan(*tables, **how)
            task = self.task(snapshot, planned)
            chunks.run(spark, planned, task, done.append)
        return done


@pytest.fixture
def backfills(kafka: KafkaServer, topic_prefix: str) -> Callable[..., Backfill]:
    """Make them: `backfills(database.dsn, partitions=1)`."""
    return lambda dsn, **options: Backfill(
        dsn, kafka.bootstrap, options.pop("prefix", topic_prefix), **options
    )
