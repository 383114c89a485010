"""Where the programs of one benchmark read and write."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from confluent_kafka import Producer

from bench.watch import Topic
from walstream.local import LocalKafka, LocalPostgres

_SETTINGS = {
    "max_replication_slots": "100",
    "max_wal_senders": "100",
    "max_wal_size": "32GB",  # a checkpoint comes when it is asked for
    "autovacuum": "off",  # nothing else works while something is measured
}
# ten megabytes for each index of each partition, which some kernels fill with zeros at
# the first record: with a thousand new topics that alone takes seconds
_BROKER = {"log.index.size.max.bytes": "262144"}
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

    def topic(self, name: str, *others: str) -> Topic:
        return Topic(self.kafka.bootstrap, self.partitions, name, *others)

    def warm_tables(self, tables: int) -> None:
        """Let the broker have met as many topics: requests of few records each."""
        if tables > 1:
            warm(self, min(self.rows, _WARM_RECORDS), tables)

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
def servers(rows: int, partitions: int) -> Iterator[Place]:
    """Start a PostgreSQL and a Kafka whose code is warm."""
    with (
        LocalPostgres(settings=_SETTINGS) as postgres,
        LocalKafka(settings=_BROKER) as kafka,
    ):
        folder = Path(tempfile.mkdtemp(prefix="walstream-bench-"))
        place = Place(postgres, kafka, folder, rows, partitions)
        warm(place, min(max(rows, 10_000), _WARM_RECORDS))
        yield place


def warm(place: Place, records: int, partitions: int = 1) -> None:
    """Let the broker have compiled its code, whoever comes first."""
    topic = Topic(place.kafka.bootstrap, partitions, f"warm{partitions}")
    producer = Producer(
        {
            "bootstrap.servers": place.kafka.bootstrap,
            "compression.type": "lz4",
            "linger.ms": 5,
        }
    )
    for number in range(records):
        while True:
            try:
                producer.produce(
                    topic.name, _WARM_VALUE, b"%d" % number, number % partitions
                )
            except BufferError:
                producer.poll(0.05)
            else:
                break
    producer.flush()
    topic.close(records)
