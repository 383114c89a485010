"""The transaction consumer: whole transactions, once, whatever happens around it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from confluent_kafka import Producer
from psycopg.errors import SerializationFailure

from consumer import (
    ForeignSource,
    HandlerFailed,
    Incomplete,
    Measure,
    PoisonRecord,
    Retry,
    TopicReplaced,
    Transaction,
    TransactionConsumer,
    TransactionEnded,
    WholeTransaction,
)
from consumer.whole import reader_session
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import (
    Database,
    PostgresServer,
    temporary_database,
)
from tests.support.loads.op_record import ITEM, Feed, backfilled, insert
from tests.support.oracles.topic_reader import TopicAdmin
from tests.support.programs.consumer_thread import Running
from walstream.errors import ConfigError
from walstream.formats.op import OpEncoder
from walstream.op import Kind, ReplicationOp

PARTITIONS = 3
TABLES = """
CREATE TABLE applied (at bigserial PRIMARY KEY, lsn numeric, snapshot boolean,
  seq_ids text, txid bigint DEFAULT txid_current());
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)
"""
SOURCE = "7/db/1"


def apply(tx: Transaction, whole: WholeTransaction) -> None:
    names = " ".join(str(op.seq_id) for op in whole.ops)
    tx.execute(
        "INSERT INTO applied (lsn, snapshot, seq_ids) VALUES (%s, %s, %s)",
        (whole.lsn, whole.snapshot, names),
    )


class Bench:
    """A topic of some partitions, its transactions, and a database."""

    def __init__(self, kafka: KafkaServer, database: Database, prefix: str) -> None:
        self.kafka, self.database = kafka, database
        self.topic, self.told = f"{prefix}item", f"{prefix}told"
        self.admin = TopicAdmin(kafka.bootstrap)
        self.admin.create(self.topic, PARTITIONS)
        self.admin.create(self.told)
        database.execute(TABLES)
        self.feed = Feed(kafka.bootstrap, self.topic)
        self._told = Feed(kafka.bootstrap, self.told)
        self.measures: list[tuple[Measure, float]] = []

    def send(self, lsn: int, *partitions: int, source: str = "", size: int = 1) -> None:
        """Send a transaction with an op in each of these, in this order."""
        for seq_id, number in enumerate(partitions):
            op = insert(lsn, seq_id, [str(seq_id), "x" * size])
            self.feed.send(op, number, source)
        self.tell(lsn, *partitions, source=source)

    def tell(self, lsn: int, *partitions: int, source: str = "") -> None:
        """Send the record of a transaction."""
        counts = {str(one): partitions.count(one) for one in sorted({*partitions})}
        self.feed.flush()
        told = {
            "lsn": lsn,
            "end_lsn": lsn + 1,
            "xid": lsn,
            "commit_time": 1_700_000_000_000_000 + lsn,
            "rows": {self.topic: counts},
            "parked": 0,
        }
        self._told.send_raw(json.dumps(told).encode(), source=source)
        self._told.flush()

    def tell_raw(self, value: bytes) -> None:
        self._told.send_raw(value)
        self._told.flush()

    def consumer(self, handler: Any = apply, **options: Any) -> TransactionConsumer:
        kafka = {"bootstrap.servers": self.kafka.bootstrap, "fetch.wait.max.ms": 10}
        return TransactionConsumer(
            handler,
            self.database.dsn,
            group=options.pop("group", "g"),
            topics=options.pop("topics", [self.topic]),
            transactions=self.told,
            kafka=kafka,
            metrics=lambda what, value, *_: self.measures.append((what, value)),
            **options,
        )

    @contextmanager
    def running(self, handler: Any = apply, **options: Any) -> Iterator[Running]:
        with self.consumer(handler, **options) as consumer:
            running = Running(consumer)
            yield running
        running.join()

    def applied(self) -> list[tuple[int, bool, list[int]]]:
        return [
            (int(lsn), snapshot, [*map(int, names.split())])
            for lsn, snapshot, names in self.database.fetch(
                "SELECT lsn, snapshot, seq_ids FROM applied ORDER BY at"
            )
        ]

    def until(self, *lsns: int, running: Running | None = None) -> None:
        def found() -> bool:
            if running is not None and running.error is not None:
                raise running.error
            return [lsn for lsn, _, _ in self.applied()] == [*lsns]

        wait_until(found, 60, f"{lsns} are applied")


@pytest.fixture
def bench(
    kafka: KafkaServer, newest_postgres: PostgresServer, topic_prefix: str
) -> Iterator[Bench]:
    with temporary_database(newest_postgres) as database:
        yield Bench(kafka, database, topic_prefix)


def test_a_transaction_waits_until_all_of_it_was_read(bench: Bench) -> None:
    bench.tell(10, 0, 1, 2)
    bench.feed.send(insert(10, 0, ["0", "1"]), 0)
    bench.feed.send(insert(10, 2, ["2", "1"]), 2)
    with bench.running() as running:
        bench.feed.flush()
        bench.send(20, 2)
        wait_until(lambda: len(running.consumer.lag()) == PARTITIONS, 30, "it reads")
        assert bench.applied() == []
        bench.feed.send(insert(10, 1, ["1", "1"]), 1)
        bench.feed.flush()
        bench.until(10, 20, running=running)
    assert bench.applied()[0] == (10, False, [0, 1, 2])


@pytest.mark.parametrize("memory", [1, 64 << 20])
def test_a_restart_repeats_nothing_and_a_replay_neither(
    bench: Bench, memory: int
) -> None:
    for lsn in (10, 20, 30):
        bench.send(lsn, 0, 1, 1, 2)
    with bench.running(memory=memory) as running:
        bench.until(10, 20, 30, running=running)
    for lsn in (20, 30, 40):  # a replay
        bench.send(lsn, 0, 1, 1, 2)
    with bench.running(memory=memory) as running:
        bench.until(10, 20, 30, 40, running=running)
        bench.send(50, 1)
        bench.until(10, 20, 30, 40, 50, running=running)
        wait_until(lambda: sum(running.consumer.lag().values()) == 0, 30, "no lag")
    assert [names for _, _, names in bench.applied()][:4] == [[0, 1, 2, 3]] * 4


def test_a_transaction_beyond_the_memory_lies_on_disk_and_keeps_its_order(
    bench: Bench,
) -> None:
    count = 3000
    bench.send(10, *(number % PARTITIONS for number in range(count)), size=300)
    bench.send(20, 0)
    kinds: list[str] = []

    def handle(tx: Transaction, whole: WholeTransaction) -> None:
        kinds.append(type(whole.ops).__name__)
        assert len([*whole.ops]) == len(whole.ops)
        apply(tx, whole)

    with bench.running(handle, memory=100_000) as running:
        bench.until(10, 20, running=running)
    assert kinds == ["SpilledOps", "tuple"]
    assert bench.applied()[0][2] == [*range(count)]


def test_a_handler_is_asked_again_and_its_failure_names_the_transaction(
    bench: Bench,
) -> None:
    asked: list[int] = []

    def handle(tx: Transaction, whole: WholeTransaction) -> None:
        asked.append(whole.lsn)
        apply(tx, whole)
        if len(asked) < 3:
            raise Retry
        if whole.lsn == 20:
            raise ValueError("secret")

    bench.send(10, 0)
    bench.send(20, 1)
    with bench.running(handle) as running:
        error = running.fails(HandlerFailed)
    assert (error.lsn, "ValueError" in str(error)) == (20, True)
    assert "secret" not in str(error)
    assert asked == [10, 10, 10, 20]
    assert [lsn for lsn, _, _ in bench.applied()] == [10]
    assert (Measure.RETRIED, 1) in bench.measures


@pytest.mark.parametrize("how", ["retry", "serialization", "another"])
def test_what_a_handler_committed_is_not_done_again(bench: Bench, how: str) -> None:
    calls: list[int] = []

    def handle(tx: Transaction, whole: WholeTransaction) -> None:
        calls.append(whole.lsn)
        apply(tx, whole)
        tx.execute("COMMIT")
        if how == "another":
            tx.execute("BEGIN")
        elif how == "retry":
            raise Retry
        else:
            raise SerializationFailure

    bench.send(10, 0)
    with bench.running(handle) as running:
        error = running.fails(TransactionEnded)
    assert error.lsn == 10
    assert calls == [10]
    assert [lsn for lsn, _, _ in bench.applied()] == [10]


def test_what_a_constraint_refuses_at_the_commit_names_it(bench: Bench) -> None:
    def handle(tx: Transaction, whole: WholeTransaction) -> None:
        apply(tx, whole)
        if whole.lsn == 20:
            tx.execute("INSERT INTO child VALUES (7)")

    bench.send(10, 0)
    bench.send(20, 1)
    with bench.running(handle) as running:
        error = running.fails(HandlerFailed)
    assert "child_id_fkey" in str(error)
    assert "23503" in str(error)
    assert [lsn for lsn, _, _ in bench.applied()] == [10]


def test_a_session_that_is_ended_at_any_moment_repeats_and_loses_nothing(
    bench: Bench,
) -> None:
    lsns = [*range(10, 400, 10)]
    over = threading.Event()

    def end_sessions() -> None:
        while not over.wait(0.03):
            bench.database.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE application_name = 'consumer g'"
            )

    ending = threading.Thread(target=end_sessions)
    with bench.running() as running:
        ending.start()
        for lsn in lsns:
            bench.send(lsn, lsn % 3, 0)
        over.wait(3)
        over.set()
        ending.join()
        bench.until(*lsns, running=running)


def test_of_two_processes_of_a_group_one_takes_effect(bench: Bench) -> None:
    lsns = [*range(10, 300, 10)]
    with bench.running() as first, bench.running() as second:
        for lsn in lsns:
            bench.send(lsn, lsn % 3, 1)
        bench.until(*lsns, running=first)
        assert second.error is None


def test_a_record_that_is_gone_stops_it_and_the_repair_goes_on(bench: Bench) -> None:
    bench.send(10, 0, 1)
    bench.send(20, 1)
    bench.send(30, 1, 2)
    bench.admin.delete_before(bench.topic, 1, partition=1)  # of 10
    with bench.running() as running:
        error = running.fails(Incomplete)
    assert (error.lsn, error.topic, error.partition) == (10, bench.topic, 1)
    assert bench.applied() == []
    bench.database.execute(error.repair.sql)
    with bench.running() as running:
        bench.until(20, 30, running=running)


def test_a_transaction_that_is_not_told_stops_it(bench: Bench) -> None:
    bench.feed.send(insert(10, 0, ["1", "1"]), 0)
    bench.send(20, 1)
    with bench.running() as running:
        error = running.fails(Incomplete)
    assert error.lsn == 10
    assert "does not tell" in str(error)
    assert bench.applied() == []


def test_one_repair_passes_by_all_that_retention_took(bench: Bench) -> None:
    """A group that begins, where the oldest records are deleted in some partitions."""
    for lsn in range(10, 60, 10):
        bench.send(lsn, 0, 1)
    bench.send(60, 0, 1, 2)
    bench.admin.delete_before(bench.topic, 3)
    with bench.running() as running:
        error = running.fails(Incomplete)
    assert error.lsn == 10
    assert "3 such ones" in str(error)
    bench.database.execute(error.repair.sql)
    with bench.running() as running:
        bench.until(40, 50, 60, running=running)


def test_a_mark_tells_that_nothing_is_to_come(bench: Bench) -> None:
    bench.send(10, 0)
    bench.tell(20, 1)  # its record was lost, and nothing later is there
    ends = {"resolved": 21, "time": 1, "next": {bench.topic: [1, 0, 0]}}
    with bench.running() as running:
        bench.until(10, running=running)
        bench.tell_raw(json.dumps(ends).encode())
        error = running.fails(Incomplete)
    assert (error.lsn, error.partition) == (20, 1)


def test_records_that_were_deleted_before_they_were_read_stop_it(bench: Bench) -> None:
    bench.send(10, 0)
    with bench.running() as running:
        bench.until(10, running=running)
    bench.send(20, 0)
    bench.send(30, 0)
    bench.admin.delete_before(bench.topic, 2)
    with bench.running() as running:
        error = running.fails(TopicReplaced)
    assert "replication_consumer_transaction_place" in str(error)


@pytest.mark.parametrize("number", [1, PARTITIONS])
def test_what_was_deleted_is_missed_where_no_record_was_ever_read(
    bench: Bench, number: int
) -> None:
    """Be it in a partition that was empty so far, or that did not exist."""
    bench.send(10, 0)
    with bench.running() as running:
        bench.until(10, running=running)
    bench.admin.grow(bench.topic, PARTITIONS + 1)
    feed = Feed(bench.kafka.bootstrap, bench.topic)
    for index in range(2):
        feed.send(backfilled(10, 2, index, ["1", "1"]), number)
    feed.flush()
    bench.admin.delete_before(bench.topic, 1, number)
    with bench.running() as running:
        error = running.fails(TopicReplaced)
    assert error.partition == number


def test_another_source_waits_until_it_is_accepted(bench: Bench) -> None:
    bench.send(1000, 0, 1, source=SOURCE)
    bench.send(1010, 2, source=SOURCE)
    other = "8/db/1"
    bench.send(10, 0, 2, source=other)
    bench.send(20, 1, source=other)
    with bench.running() as running:
        error = running.fails(ForeignSource)
    assert f'accept_source="{other}"' in str(error)
    assert [lsn for lsn, _, _ in bench.applied()] == [1000, 1010]
    with bench.running(accept_source=other) as running:
        bench.until(1000, 1010, 10, 20, running=running)
    with bench.running() as running:  # it is stored
        bench.send(30, 0)
        bench.until(1000, 1010, 10, 20, 30, running=running)


def test_topics_of_another_source_that_never_comes_are_named(
    bench: Bench,
    topic_prefix: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(reader_session, "_WARN_S", 0.2)
    bench.send(1000, 0, source=SOURCE)
    other = f"{topic_prefix}other"
    bench.admin.create(other, 1)
    feed = Feed(bench.kafka.bootstrap, other)
    feed.send(insert(10, 0, ["1", "1"]), source="8/db/1")
    feed.flush()
    with bench.running(topics=[bench.topic, other]) as running:
        bench.until(1000, running=running)
        wait_until(lambda: "does not come to" in caplog.text, 60, "it is told")
    assert f"{other}[0] at offset 0, from source 8/db/1" in caplog.text


def test_backfilled_rows_come_behind_what_they_saw_and_before_the_next(
    bench: Bench,
) -> None:
    empty = ReplicationOp(
        Kind.TRUNCATE, ITEM, 15, 1 << 32, partitions=PARTITIONS, snapshot=True
    )
    with bench.running() as running:
        for number in range(PARTITIONS):
            bench.feed.send(backfilled(5, 1, number, ["1", "1"]), number)
        bench.feed.flush()  # before anything is told
        wait_until(lambda: len(bench.applied()) >= 1, 60, "rows are applied")
        bench.send(10, 0)
        for number in range(PARTITIONS - 1):
            bench.feed.send(empty, number)
            bench.feed.send(backfilled(15, 2, number, ["1", "1"]), number)
        bench.feed.flush()
        bench.send(20, 0)
        bench.feed.send(empty, 2)
        bench.feed.send(backfilled(15, 2, 2, ["1", "1"]), 2)
        bench.feed.flush()
        wait_until(
            lambda: running.error or (20, False, [0]) in bench.applied(), 60, "20"
        )
        wait_until(lambda: sum(running.consumer.lag().values()) == 0, 60, "no lag")
    applied = bench.applied()
    lsns = [lsn for lsn, _, _ in applied]
    assert lsns[:5] == [5, 5, 5, 10, 15]
    assert applied[4] == (15, True, [1 << 32])
    # the last row is there later than 20 is told, and may come then
    assert lsns[: lsns.index(20)].count(15) >= 3
    rows = sorted(name for lsn, _, names in applied if lsn == 15 for name in names)
    assert rows == [1 << 32, *((2 << 32) + number for number in range(PARTITIONS))]
    with bench.running():  # nothing of it comes again
        bench.feed.send(backfilled(15, 2, 2, ["1", "1"]), 2)
        bench.send(30, 2)
        wait_until(lambda: bench.applied()[-1][0] == 30, 60, "30 is applied")
    assert len(bench.applied()) == len(applied) + 1


def test_a_topic_that_comes_is_read_from_its_first_transaction_on(
    bench: Bench, topic_prefix: str
) -> None:
    bench.send(10, 0)
    with bench.running(topics=f"{topic_prefix}*") as running:
        bench.until(10, running=running)
        other = f"{topic_prefix}other"
        bench.admin.create(other, 2)
        feed = Feed(bench.kafka.bootstrap, other)
        feed.send(insert(20, 0, ["1", "1"]), 1)
        feed.flush()
        told = {"lsn": 20, "end_lsn": 21, "xid": None, "commit_time": 1, "parked": 0}
        bench.tell_raw(json.dumps({**told, "rows": {other: {"1": 1}}}).encode())
        bench.until(10, 20, running=running)
    assert bench.applied()[-1] == (20, False, [0])


def test_kafkas_transactions_are_read_when_they_are_committed(bench: Bench) -> None:
    """Their markers take offsets; what was aborted is there, and is not read."""
    producer = Producer(
        {"bootstrap.servers": bench.kafka.bootstrap, "transactional.id": bench.topic}
    )
    producer.init_transactions(30)

    def put(lsn: int) -> None:
        producer.begin_transaction()
        value = OpEncoder(ITEM).encode(insert(lsn, 0, ["1", "1"]))
        producer.produce(bench.topic, value, b"k", 0)
        producer.flush()

    put(5)
    producer.abort_transaction(30)
    with bench.running() as running:
        put(10)
        bench.tell(10, 0)
        bench.send(20, 1)
        lag = running.consumer.lag
        wait_until(lambda: sum(lag().values()) == 1, 60, "20 is read, and waits")
        assert bench.applied() == []
        producer.commit_transaction(30)
        bench.until(10, 20, running=running)
        wait_until(lambda: sum(lag().values()) == 0, 60, "markers are read, too")


def test_a_deleted_topic_holds_no_other_up(bench: Bench, topic_prefix: str) -> None:
    other = f"{topic_prefix}other"
    bench.admin.create(other, 1)
    bench.send(10, 0)
    with bench.running(topics=[bench.topic, other]) as running:
        bench.until(10, running=running)
        bench.admin.delete(other)
        bench.send(20, 0)
        bench.until(10, 20, running=running)


def test_a_topic_that_the_group_did_not_read_stops_it(
    bench: Bench, topic_prefix: str
) -> None:
    other = f"{topic_prefix}other"
    bench.admin.create(other, 1)
    feed = Feed(bench.kafka.bootstrap, other)
    feed.send(insert(10, 1, ["1", "1"]), 0)
    feed.flush()
    bench.send(10, 0)
    with bench.running() as running:
        bench.until(10, running=running)
    with bench.running(topics=[bench.topic, other]) as running:
        error = running.fails(Incomplete)
    assert error.topic == other
    assert "new group" in str(error)


def test_what_tells_no_transactions_is_refused(bench: Bench) -> None:
    bench.tell_raw(b'{"status":"BEGIN","id":"7:8","ts_ms":1}')
    with bench.running() as running:
        error = running.fails(PoisonRecord)
    assert 'txinfo_form = "walstream"' in str(error)


def test_a_transaction_topic_of_several_partitions_is_refused(bench: Bench) -> None:
    bench.admin.grow(bench.told, 2)
    with bench.running() as running:
        error = running.fails(ConfigError)
    assert "2 partitions" in str(error)


def test_a_group_keeps_its_transaction_topic(bench: Bench) -> None:
    bench.send(10, 0)
    with bench.running() as running:
        bench.until(10, running=running)
    bench.told += "-other"
    bench.admin.create(bench.told)
    with bench.running() as running:
        error = running.fails(ConfigError)
    assert "another group" in str(error)


def test_a_handler_that_commits_is_told(bench: Bench) -> None:
    def handle(tx: psycopg.Connection[Any], whole: WholeTransaction) -> None:
        apply(tx, whole)
        tx.execute("COMMIT")

    bench.send(10, 0)
    with bench.running(handle) as running:
        error = running.fails(Exception)
    assert "ended its transaction" in str(error)
