"""`python -m bench.consumer`: the consumers, beside what the same work costs bare.

Basic with an empty handler beside a loop of `consume()` and `orjson.loads`; idempotent
with one INSERT an op, with and without a pipeline, beside a loop of the same INSERTs
with the same batch size, beside `handle_batch` with one COPY a batch, and beside one
transaction an op. Ratios count, since machines are noisy.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Final

import orjson
import psycopg
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    NewTopic,
)

from bench.results import save
from bench.shown import show
from consumer import BasicConsumer, IdempotentConsumer, Measure, Op, Transaction
from walstream.formats.op import OpEncoder
from walstream.op import Kind, ReplicationOp, Table
from walstream.testing.servers import LocalKafka, LocalPostgres

_TABLE: Final = Table("public", "item", ("id", "organization_id", "note"))
_NOTE: Final = "some text of about forty characters, yes"
_INSERT: Final = "INSERT INTO item VALUES (%s, %s, %s)"
_PARTITIONS: Final = 4
_SINGLE: Final = 2000  # transactions of one op are slow
_INSERTED: Final = 15  # ops of the basic one for each INSERT


@dataclass
class Rate:
    rows_per_s: float


Figures = dict[str, list[Rate]]


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

    def idempotent(
        self, topic: str, ops: int, batch: int, *, pipeline: bool = False
    ) -> float:
        self._empty()
        seen, committed, begun, ended = 0, 0, 0.0, 0.0

        def handle(tx: Transaction, op: Op) -> None:
            nonlocal seen, begun
            new = op.new
            tx.execute(_INSERT, (new["id"], new["organization_id"], new["note"]))
            seen += 1
            if seen == 1:
                begun = time.perf_counter()
            elif seen == ops:
                consumer.stop()

        def count(measure: Measure, value: float, _: str, __: int) -> None:
            nonlocal committed, ended
            committed += int(value) if measure is Measure.HANDLED else 0
            if committed == ops and not ended:
                ended = time.perf_counter()

        consumer = IdempotentConsumer(
            handle,
            self.dsn,
            group=token_hex(6),
            topics=topic,
            kafka={"bootstrap.servers": self.bootstrap},
            batch=batch,
            pipeline=pipeline,
            metrics=count,
        )
        consumer.run()
        return ops / (ended - begun)

    def batches(self, topic: str, ops: int, batch: int) -> float:
        self._empty()
        seen, begun, ended = 0, 0.0, 0.0

        class Copies:
            def handle_batch(self, tx: Transaction, given: Sequence[Op]) -> None:
                nonlocal seen, begun, ended
                begun = begun or time.perf_counter()
                with tx.cursor().copy("COPY item FROM STDIN") as rows:
                    for op in given:
                        rows.write_row(tuple(op.new.values()))
                seen += len(given)
                if seen == ops:
                    ended = time.perf_counter()
                    consumer.stop()

        consumer = IdempotentConsumer(
            Copies(),
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
    parser.add_argument(
        "--rows", type=int, default=300_000, help="ops of the basic consumer"
    )
    parser.add_argument("--inserts", type=int, default=0, help="default: rows / 15")
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--runs", type=int, default=7, help="runs of each, in turn")
    parser.add_argument("--small", action="store_true")
    wanted = parser.parse_args()
    rows, batch = wanted.rows, wanted.batch
    inserts = wanted.inserts or max(rows // _INSERTED, 1)
    single = min(_SINGLE, inserts)
    figures: Figures = {}
    with LocalPostgres() as postgres, LocalKafka() as kafka:
        stage = Stage(kafka, postgres)
        stage.fill("basic", rows, _PARTITIONS)
        stage.fill("inserts", inserts, 1)
        for _ in range(wanted.runs):  # by turns: other work of the machine meets all
            _note(figures, "basic", stage.basic("basic", rows))
            _note(figures, "basic, bare", stage.bare_basic("basic", rows))
            name = "idempotent"
            _note(figures, name, stage.idempotent("inserts", inserts, batch))
            _note(figures, f"{name}, bare", stage.bare_inserts(inserts, batch))
            name = "idempotent, pipeline"
            rate = stage.idempotent("inserts", inserts, batch, pipeline=True)
            _note(figures, name, rate)
            name = "idempotent, handle_batch with COPY"
            _note(figures, name, stage.batches("inserts", inserts, batch))
            name = "idempotent, one transaction an op"
            _note(figures, name, stage.idempotent("inserts", single, 1))
            _note(figures, f"{name}, bare", stage.bare_inserts(single, 1))
    show(save("consumer", figures, vars(wanted), small=wanted.small))


def _note(figures: Figures, name: str, rate: float) -> None:
    figures.setdefault(name, []).append(Rate(rate))


if __name__ == "__main__":
    main()
