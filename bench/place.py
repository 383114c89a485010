"""Where the programs of one benchmark read and write."""

import itertools
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from confluent_kafka import Producer

from bench.watch import Topic
from walstream.testing.servers import LocalKafka, LocalPostgres

_SETTINGS = {
    "max_replication_slots": "100",
    "max_wal_senders": "100",
    "max_wal_size": "32GB",  # a checkpoint comes when it is asked for
    "autovacuum": "off",  # nothing else works while something is measured
}
# ten megabytes for each index of each partition, which some kernels fill with zeros at
# the first record: with a thousand new topics that alone takes seconds
_BROKER = {"log.index.size.max.bytes": "262144"}
_WARM_S = 5.0  # a broker's second million of records is twice as fast as its first
_WARM_RECORDS = 1_000_000
_WARM_VALUE = b'{"some": "record of a size as theirs"}' * 5


@dataclass
class Place:
    """Where all of them read and write."""

    postgres: LocalPostgres
    kafka: LocalKafka
    folder: Path
    rows: int
    partitions: int

    def topic(self, name: str, *others: str, partitions: int = 0) -> Topic:
        """Make topics; partitions=0: as many as all have."""
        each = partitions or self.partitions
        return Topic(self.kafka.bootstrap, each, name, *others)

    def warm_tables(self, tables: int) -> None:
        """Let the broker have met as many topics: requests of few records each."""
        if tables > 1:
            records = range(min(self.rows, _WARM_RECORDS))
            produce(self, f"warm{tables}", tables, records)

    def pages(self) -> int:
        with psycopg.connect(self.postgres.dsn()) as connection:
            query = (
                "SELECT pg_relation_size('backlog') / current_setting('block_size')"
                "::int"
            )
            row = connection.execute(query).fetchone()
        return int(row[0]) if row else 0

    def sql(self, *statements: str) -> str:
        """Give the first value of the last statement."""
        with psycopg.connect(self.postgres.dsn(), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            row = cursor.fetchone() if cursor.description else None
        return str(row[0]) if row else ""


@contextmanager
def servers(
    rows: int, partitions: int, kind: Callable[..., LocalKafka] = LocalKafka
) -> Iterator[Place]:
    """Start a PostgreSQL and a Kafka whose code is warm."""
    with (
        LocalPostgres(settings=_SETTINGS) as postgres,
        kind(settings=_BROKER) as kafka,
    ):
        folder = Path(tempfile.mkdtemp(prefix="walstream-bench-"))
        place = Place(postgres, kafka, folder, rows, partitions)
        warm(place)
        yield place


def warm(place: Place) -> None:
    """Let the broker have compiled its code, whoever comes first."""
    end = time.monotonic() + _WARM_S
    in_time = itertools.takewhile(lambda _: time.monotonic() < end, itertools.count())
    produce(place, "warm", place.partitions, in_time)


def produce(place: Place, name: str, partitions: int, records: Iterable[int]) -> None:
    """Send records of a usual size as walstream would, to each partition in turn."""
    topic = Topic(place.kafka.bootstrap, partitions, name)
    producer = Producer(
        {
            "bootstrap.servers": place.kafka.bootstrap,
            "compression.type": "lz4",
            "linger.ms": 5,
            "acks": "all",
            "enable.idempotence": True,
        }
    )
    sent = 0
    for number in records:
        while True:
            try:
                producer.produce(
                    topic.name, _WARM_VALUE, b"%d" % number, number % partitions
                )
            except BufferError:
                producer.poll(0.05)
            else:
                break
        sent += 1
    producer.flush()
    topic.close(sent)
