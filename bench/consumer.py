"""`python -m bench.consumer`: the consumers, beside what the same work costs bare.

Basic with an empty handler beside a loop of `consume()` and `orjson.loads`; idempotent
with one INSERT an op beside a loop of the same INSERTs with the same batch size, and
beside one transaction an op. Ratios count, since machines are noisy.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from secrets import token_hex
from typing import Final

import orjson
import psycopg
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    NewTopic,
)
from rich.console import Console
from rich.table import Table as RichTable

from consumer import BasicConsumer, IdempotentConsumer, Op, Transaction
from walstream.formats.op import OpEncoder
from walstream.local import LocalKafka, LocalPostgres
from walstream.op import Kind, ReplicationOp, Table

_TABLE: Final = Table("public", "item", ("id", "organization_id", "note"))
_NOTE: Final = "some text of about forty characters, yes"
_INSERT: Final = "INSERT INTO item VALUES (%s, %s, %s)"
_PARTITIONS: Final = 4
_SINGLE: Final = 2000  # transactions of one op are slow
_WIDTH: Final = 100


class Stage:
    """A broker and a server, with a topic of ops for each of the two consumers."""

    def __init__(self, kafka: LocalKafka, postgres: LocalPostgres) -> None:
        self.bootstrap = kafka.bootstrap
        self.dsn = postgres.dsn()

    def fill(self, topic: str, ops: int, partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.create_topics([NewTopic(topic, partitions)])[topic].result(30)
        producer = Producer(
            {"bootstrap.servers": self.bootstrap, "queue.buffering.max.messages": 0}
        )
        encoder = OpEncoder(_TABLE)
        for number in range(ops):
            row = [str(number), "9", _NOTE]
            op = ReplicationOp(Kind.INSERT, _TABLE, 1000 + number * 8, 0, new=row)
            key = f'["{number}"]'.encode()
            producer.produce(topic, encoder.encode(op), key, number % partitions)
            producer.poll(0)
        producer.flush()

    def bare_basic(self, topic: str, ops: int) -> float:
        seen, begun = 0, 0.0
        settings = {
            "bootstrap.servers": self.bootstrap,
            "group.id": token_hex(6),
            "auto.offset.reset": "earliest",
        }
        with Consumer(settings) as consumer:
            consumer.subscribe([topic])
            while seen < ops:
                for message in consumer.consume(1000, timeout=0.5):
                    begun = begun or time.perf_counter()
                    orjson.loads(message.value() or b"")
                    seen += 1
            return ops / (time.perf_counter() - begun)

    def basic(self, topic: str, ops: int) -> float:
        seen, begun, ended = 0, 0.0, 0.0

        def handle(_: Op) -> None:
            nonlocal seen, begun, ended
            seen += 1
            if seen == 1:
                begun = time.perf_counter()
            elif seen == ops:
                ended = time.perf_counter()
                consumer.stop()

        kafka = {"bootstrap.servers": self.bootstrap}
        consumer = BasicConsumer(handle, group=token_hex(6), topics=topic, kafka=kafka)
        consumer.run()
        return ops / (ended - begun)

    def bare_inserts(self, ops: int, batch: int) -> float:
        self._empty()
        with psycopg.connect(self.dsn) as connection:
            begun = time.perf_counter()
            for number in range(1, ops + 1):
                connection.execute(_INSERT, (str(number), "9", _NOTE))
                if number % batch == 0:
                    connection.commit()
            connection.commit()
            return ops / (time.perf_counter() - begun)

    def idempotent(self, topic: str, ops: int, batch: int) -> float:
        self._empty()
        seen, begun, ended = 0, 0.0, 0.0

        def handle(tx: Transaction, op: Op) -> None:
            nonlocal seen, begun, ended
            new = op.new
            tx.execute(_INSERT, (new["id"], new["organization_id"], new["note"]))
            seen += 1
            if seen == 1:
                begun = time.perf_counter()
            elif seen == ops:
                ended = time.perf_counter()
                consumer.stop()

        consumer = IdempotentConsumer(
            handle,
            self.dsn,
            group=token_hex(6),
            topics=topic,
            kafka={"bootstrap.servers": self.bootstrap},
            batch=batch,
        )
        consumer.run()
        return ops / (ended - begun)

    def _empty(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS item")
            connection.execute(
                "CREATE TABLE item (id bigint, organization_id int, note text)"
            )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.consumer")
    parser.add_argument("--ops", type=int, default=300_000, help="of the basic one")
    parser.add_argument("--inserts", type=int, default=20_000)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--runs", type=int, default=7, help="of each, by turns")
    wanted = parser.parse_args()
    batch, inserts = wanted.batch, wanted.inserts
    single = min(_SINGLE, inserts)
    table = Report("consumer library", "bare", "ratio", "of runs", "goal")
    with LocalPostgres() as postgres, LocalKafka() as kafka:
        stage = Stage(kafka, postgres)
        stage.fill("basic", wanted.ops, _PARTITIONS)
        stage.fill("inserts", inserts, 1)
        table.compare(
            "basic, empty handler | consume() and orjson.loads",
            "0.50",
            wanted.runs,
            lambda: stage.basic("basic", wanted.ops),
            lambda: stage.bare_basic("basic", wanted.ops),
        )
        table.compare(
            f"idempotent, one INSERT an op, batches of {batch} | psycopg loop",
            "0.85",
            wanted.runs,
            lambda: stage.idempotent("inserts", inserts, batch),
            lambda: stage.bare_inserts(inserts, batch),
        )
        table.compare(
            "the same, one transaction an op",
            "",
            wanted.runs,
            lambda: stage.idempotent("inserts", single, 1),
            lambda: stage.bare_inserts(single, 1),
        )
    table.show()


class Report:
    """One line for each comparison, in ops a second."""

    def __init__(self, *columns: str) -> None:
        self._table = RichTable("what | beside what", title="ops a second, medians")
        for column in columns:
            self._table.add_column(column, justify="right", no_wrap=True)

    def compare(
        self,
        what: str,
        goal: str,
        runs: int,
        ours: Callable[[], float],
        bare: Callable[[], float],
    ) -> None:
        """Run both by turns, since other work on the machine meets both."""
        found = [(ours(), bare()) for _ in range(runs)]
        ratios = sorted(mine / theirs for mine, theirs in found)
        mine, theirs = (statistics.median(rates) for rates in zip(*found, strict=True))
        self._table.add_row(
            what,
            f"{mine:,.0f}",
            f"{theirs:,.0f}",
            f"{statistics.median(ratios):.2f}",
            f"{ratios[0]:.2f}-{ratios[-1]:.2f}",
            goal,
        )

    def show(self) -> None:
        Console(width=_WIDTH).print(self._table)


if __name__ == "__main__":
    main()
