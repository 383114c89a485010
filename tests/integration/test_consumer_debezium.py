"""Consumers of Debezium's records: walstream's own, and those of a real Debezium."""

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from consumer import BasicConsumer, IdempotentConsumer, Kind, Measure, Op, Transaction
from consumer.op import ConsumerRecord, EnvelopeOp
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.loads.envelope import debezium, envelope, record
from tests.support.oracles.debezium import golden
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.consumer_thread import Running
from walstream.kafka.last_op import topic_ends

COMMAND = Path(sys.executable).with_name("walstream")
WAIT_S = 60
TABLE = """
CREATE TABLE t (id int PRIMARY KEY, v text, big text);
ALTER TABLE t ALTER big SET STORAGE EXTERNAL;
INSERT INTO t SELECT n, 'before' FROM generate_series(1, 5) n;
"""
CHANGES = """
INSERT INTO t VALUES (6, 'six', repeat('x', 9000));
UPDATE t SET v = 'new' WHERE id = 6;
UPDATE t SET id = 7, big = 'y' WHERE id = 6;
DELETE FROM t WHERE id = 1;
"""
APPLIED = "CREATE TABLE applied (lsn numeric, seq_id numeric, kind text, id text)"
Send = Callable[[str, Iterable[ConsumerRecord]], None]


@pytest.fixture
def send(kafka: KafkaServer) -> Send:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": 0})

    def write(topic: str, records: Iterable[ConsumerRecord]) -> None:
        for one in records:
            headers: list[tuple[str, str | bytes | None]] = [*one.headers]
            part = one.partition
            producer.produce(topic, one.value, one.key, part, headers=headers)
        assert producer.flush(30) == 0

    return write


def note(tx: Transaction, op: Op) -> None:
    row = op.old if op.kind is Kind.DELETE else op.new
    values = (op.lsn, op.seq_id, op.kind.value, row.get("id", default=None))
    tx.execute("INSERT INTO applied VALUES (%s, %s, %s, %s)", values)


class Group:
    """A group of idempotent consumers, one after the other."""

    def __init__(self, kafka: KafkaServer, database: Database, topic: str) -> None:
        self._kafka = kafka
        self.database = database
        self._topic = topic
        self.measures: Counter[Measure] = Counter()

    @contextmanager
    def running(self, handler: Any = note) -> Iterator[None]:
        kafka = {"bootstrap.servers": self._kafka.bootstrap, "fetch.wait.max.ms": 10}
        with IdempotentConsumer(
            handler,
            self.database.dsn,
            group=self._topic,
            topics=self._topic,
            kafka=kafka,
            metrics=self._measure,
        ) as consumer:
            running = Running(consumer)
            yield
            assert running.error is None
        running.join()

    def _measure(self, what: Measure, value: float, _: str, __: int) -> None:
        self.measures[what] += int(value)

    def until(self, wanted: int) -> list[tuple[Any, ...]]:
        def count() -> int:
            found: int = self.database.fetch("SELECT count(*) FROM applied")[0][0]
            return found

        wait_until(lambda: count() >= wanted, WAIT_S, f"{wanted} ops are applied")
        rows = self.database.fetch("SELECT lsn, seq_id, kind, id FROM applied")
        assert len(rows) == wanted
        return rows

    def until_skipped(self, wanted: int) -> None:
        wait_until(
            lambda: self.measures[Measure.SKIPPED] >= wanted, WAIT_S, "all is skipped"
        )


@pytest.fixture
def group(kafka: KafkaServer, database: Database, topic_prefix: str) -> Group:
    database.execute(APPLIED)
    return Group(kafka, database, f"{topic_prefix}public.t")


@pytest.mark.same_on_15
@pytest.mark.parametrize("options", [{}, {"schemas": True, "transaction_block": True}])
def test_what_walstream_sends_again_takes_effect_once(  # noqa: PLR0913, PLR0917
    group: Group,
    runs: Runs,
    kafka: KafkaServer,
    topic_prefix: str,
    send: Send,
    options: dict[str, Any],
) -> None:
    database = group.database
    database.execute(TABLE)
    own = {"name": "app", **options}
    sink = {"format": "debezium", "debezium": own, "topic_partitions": 2}
    # the consumer's own tables are no part of it
    source = {"backfill": "initial", "tables": ["public.t"]}
    with (
        Reader(kafka.bootstrap, topic_prefix, lambda value: value) as reader,
        runs(database.dsn, sink=sink, source=source) as walstream,
    ):
        walstream.until("backfill ended")
        database.execute(CHANGES)
        sent = reader.until(lambda records: len(records) >= 12)
        with group.running():
            rows = group.until(10)
        assert len(set(rows)) == 10
        kinds = Counter(kind for *_, kind, _ in rows)
        assert kinds == {"Insert": 7, "Update": 1, "Delete": 2}
        again = [
            ConsumerRecord(
                *(one.topic, one.partition, 0, one.key, one.value, 0),
                tuple(one.headers),
            )
            for one in sorted(sent, key=lambda one: one.offset)
        ]
        topic = f"{topic_prefix}public.t"
        send(topic, again)
        database.execute("INSERT INTO t VALUES (9, 'last')")
        with group.running():
            rows = group.until(11)
            group.until_skipped(14)  # and four tombstones
        assert len(set(rows)) == 11
        ends = topic_ends({"bootstrap.servers": kafka.bootstrap}, [topic], "")
        last = ends[0].last
        assert last is not None
        newest = max((lsn, seq_id) for lsn, seq_id, *_ in rows)
        assert (last.lsn, last.seq_id) == newest


def test_of_debezium_each_record_is_handled_once(
    group: Group, topic_prefix: str, send: Send, kafka: KafkaServer
) -> None:
    """Restarts repeat nothing, and no row counts as seen that was not."""
    topic = f"{topic_prefix}public.t"
    TopicAdmin(kafka.bootstrap).create(topic, 1)
    copied = [
        record(envelope("c", after={"id": n}, lsn=50), {"id": n}) for n in range(1, 4)
    ]
    late = record(envelope("c", after={"id": 4}, lsn=20), {"id": 4})
    send(topic, [*copied, late])
    with group.running():
        group.until(4)
    send(topic, [record(envelope("u", after={"id": 4}, lsn=50), {"id": 4})])
    for _ in range(2):  # runs
        with group.running():
            rows = group.until(5)
    assert Counter(found for *_, found in rows) == {"1": 1, "2": 1, "3": 1, "4": 2}
    send(topic, copied)  # Debezium sends again what it did not note as sent
    with group.running():
        group.until(8)


def test_an_op_knows_in_how_many_partitions_its_order_is_lost(
    group: Group, topic_prefix: str, send: Send, kafka: KafkaServer
) -> None:
    topic = f"{topic_prefix}public.t"
    TopicAdmin(kafka.bootstrap).create(topic, 3)
    position = {"walstream-position": b"16/3"}
    row = envelope("c", after={"id": 1})
    send(
        topic,
        [
            record(envelope("t")),
            record(row),
            record(row, {"id": 1}),
            record(row, headers=position),
        ],
    )

    def count(tx: Transaction, op: Op) -> None:
        assert isinstance(op, EnvelopeOp)
        values = (op.record.offset, op.topic_partitions)
        tx.execute("INSERT INTO applied (lsn, seq_id) VALUES (%s, %s)", values)

    with group.running(count):
        rows = group.until(4)
    assert sorted((int(at), int(found)) for at, found, *_ in rows) == [
        *((0, 3), (1, 3), (2, 0), (3, 0))
    ]


def test_all_that_a_real_debezium_wrote_is_read(
    kafka: KafkaServer, topic_prefix: str, send: Send
) -> None:
    admin, expected = TopicAdmin(kafka.bootstrap), 0
    for topic, records in golden().items():
        admin.create(f"{topic_prefix}{topic}", 1)
        send(
            f"{topic_prefix}{topic}",
            (debezium(topic, number) for number in range(len(records))),
        )
        if topic.count(".") > 1:  # NAME.schema.table
            expected += sum(one.value is not None for one in records)
    seen: Counter[str] = Counter()
    with BasicConsumer(
        lambda op: seen.update([op.kind.value]),
        group=topic_prefix,
        topics=f"{topic_prefix}*",
        kafka={"bootstrap.servers": kafka.bootstrap, "fetch.wait.max.ms": 10},
    ) as consumer:
        running = Running(consumer)
        wait_until(
            lambda: running.error or seen.total() >= expected, WAIT_S, "all is read"
        )
        running.until_read(len(golden()))
    running.join()
    assert running.error is None
    assert seen.total() == expected
    assert set(seen) == {"Insert", "Update", "Delete", "Truncate"}


TAILED = (
    ("dbz.public.full_", 1, "Update public.full_ id=1", "update public.full_"),
    ("dbz.transaction", 1, "END status=END", "transaction"),
    ("dbz.message", 0, "message prefix=", "message"),
    ("__debezium-heartbeat.dbz", 0, "heartbeat ts_ms=", "heartbeat"),
)


def test_both_tails_show_each_form(
    kafka: KafkaServer, topic_prefix: str, send: Send
) -> None:
    topic = f"{topic_prefix}all"
    TopicAdmin(kafka.bootstrap).create(topic, 1)
    row = record({"id": 1, "v": "x"}, headers={"walstream-position": b"16/3"})
    send(topic, [*(debezium(name, number) for name, number, *_ in TAILED), row])
    done = subprocess.run(
        [COMMAND, "tail", "--brokers", kafka.bootstrap, topic, "-n", "9"],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
    )
    lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    wanted = [told for *_, told in TAILED] + ["0/10 #3 debezium_row"]
    assert len(lines) == len(wanted)
    for line, told in zip(lines, wanted, strict=True):
        assert told in line
    command = ("-m", "consumer", "tail", topic, "--kafka", kafka.bootstrap)
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in wanted]
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_S) == 0
    wanted = [told for _, _, told, _ in TAILED] + ["0/10/3 row id=1 v=x"]
    for line, told in zip(lines, wanted, strict=True):
        assert told in line
