"""`python -m bench.mirror`: PostgresMirror where it cannot write as it would like to.

Updates of hot rows in several partitions: by the row's key, which one partition holds,
and by another column, so that each row's ops lie in all partitions and its position is
kept. Inserts into a table with a second unique constraint, which is written row by row,
with and without a pipeline. All in turns, since machines are noisy; ratios count.
"""

import argparse
import random
import threading
import time
from secrets import token_hex
from typing import Final

import psycopg
from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    NewTopic,
)

from bench.consumer import Figures, Rate
from bench.results import save
from bench.shown import show
from consumer import IdempotentConsumer, Measure, PostgresMirror
from walstream.formats.op import OpEncoder
from walstream.op import Kind, ReplicationOp, Table
from walstream.testing.servers import LocalKafka, LocalPostgres

_TABLE: Final = Table("public", "hot", ("id", "organization_id", "note"))
_DDL: Final = """
DROP TABLE IF EXISTS hot, replication_mirror_row, replication_mirror_source;
CREATE TABLE hot (id bigint PRIMARY KEY, organization_id int, note text)
"""
_ROW_BY_ROW: Final = "ALTER TABLE hot ADD UNIQUE (id, organization_id)"
_INSERTS: Final = "inserts"


class Stage:
    """A broker and a server, with a topic for each of the two keys."""

    def __init__(self, kafka: LocalKafka, postgres: LocalPostgres) -> None:
        self._bootstrap = kafka.bootstrap
        self._dsn = postgres.dsn()

    def fill(self, topic: str, ops: int, rows: int, partitions: int) -> None:
        """Update random rows; in topic `row` each has a partition of its own.

        In that of the inserts, each op is another row.
        """
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        admin.create_topics([NewTopic(topic, partitions)])[topic].result(30)
        settings = {"bootstrap.servers": self._bootstrap, "enable.idempotence": True}
        producer = Producer({**settings, "queue.buffering.max.messages": 0})
        encoder = OpEncoder(_TABLE)
        choose = random.Random(7)  # noqa: S311 - a load
        for number in range(ops):
            row, other = choose.randrange(rows), 100_000 + choose.randrange(partitions)
            texts = [str(row), str(other), f"what was written at {number}"]
            kind = Kind.UPDATE
            if topic == _INSERTS:
                row, texts[0], kind = number, str(number), Kind.INSERT
            op = ReplicationOp(kind, _TABLE, 1000 + number * 8, 0, new=texts)
            key, place = (other, other) if topic == "other" else (row, row)
            text = f'["{key}"]'.encode()
            producer.produce(topic, encoder.encode(op), text, place % partitions)
            producer.poll(0)
        producer.flush()

    def mirrored(self, topic: str, ops: int, *, pipeline: bool = False) -> float:
        """Give ops a second, from the first batch that is handled to the last."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(_DDL)
            if topic == _INSERTS:
                connection.execute(_ROW_BY_ROW)
        begun, seen, counting = 0.0, 0.0, threading.Lock()
        first = 0.0

        def count(measure: Measure, value: float, _: str, __: int) -> None:
            nonlocal begun, seen, first
            if measure is not Measure.HANDLED:
                return
            with counting:
                if not begun:
                    begun, first = time.perf_counter(), value
                seen += value
                if seen >= ops:
                    consumer.stop()

        consumer = IdempotentConsumer(
            PostgresMirror(self._dsn),
            self._dsn,
            group=token_hex(6),
            topics=topic,
            kafka={"bootstrap.servers": self._bootstrap},
            metrics=count,
            pipeline=pipeline,
        )
        consumer.run()
        return (ops - first) / (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.mirror")
    parser.add_argument("--ops", type=int, default=60_000)
    parser.add_argument("--rows", type=int, default=600, help="number of hot rows")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--runs", type=int, default=5, help="runs of each, in turn")
    parser.add_argument("--small", action="store_true")
    wanted = parser.parse_args()
    figures: Figures = {}
    with LocalPostgres() as postgres, LocalKafka() as kafka:
        stage = Stage(kafka, postgres)
        for topic in ("row", "other", _INSERTS):
            stage.fill(topic, wanted.ops, wanted.rows, wanted.partitions)
        for _ in range(wanted.runs):
            for topic in ("row", "other"):
                rate = Rate(stage.mirrored(topic, wanted.ops))
                figures.setdefault(f"key of the {topic}", []).append(rate)
            for pipeline in (False, True):
                rate = Rate(stage.mirrored(_INSERTS, wanted.ops, pipeline=pipeline))
                name = "row by row" + ", pipeline" * pipeline
                figures.setdefault(name, []).append(rate)
    show(save("mirror", figures, vars(wanted), small=wanted.small))


if __name__ == "__main__":
    main()
