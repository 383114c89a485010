"""A transaction that its coordinator ended, and that stays open in a partition.

As Kafka leaves it where a partition has no leader at that moment (KAFKA-20734).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    NewTopic,
    OffsetSpec,
)

from tests.integration.test_transactional import system
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.loads.op_record import insert
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.verb import as_json
from tests.support.programs.walstream import SINK, Walstream
from tests.support.servers.second_broker import SecondBroker
from walstream.formats.op import OpEncoder
from walstream.kafka.transaction_position import TransactionPosition
from walstream.op import Table
from walstream.testing.servers import LocalKafka

pytestmark = [pytest.mark.fault, pytest.mark.same_on_15]

_TABLE = "CREATE TABLE t (id int PRIMARY KEY)"
_LEFT_OUT = "Couldn't find leader endpoint"
_ENDED = "Kafka left a transaction open"
_PATIENCE_S = 60.0


@pytest.fixture
def database(newest_postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(newest_postgres) as made:
        yield made


class Cluster:
    """Two brokers; the first coordinates transactions, and has topics of its own."""

    def __init__(self, first: LocalKafka, second: LocalKafka) -> None:
        self.first = first
        self.second = second
        self._admin = AdminClient(
            {"bootstrap.servers": first.bootstrap, "log_level": 0}
        )

    def create(self, topics: Mapping[str, int], partitions: int) -> None:
        """Create topics, all of each on one broker.

        They are compacted, as that of positions is: none takes a record without key.
        """
        made = [
            NewTopic(
                name,
                partitions,
                replica_assignment=[[broker]] * partitions,
                config={"cleanup.policy": "compact"},
            )
            for name, broker in topics.items()
        ]
        for one in self._admin.create_topics(made).values():
            one.result(30)

    def ends(self, topic: str, partitions: int, level: IsolationLevel) -> list[int]:
        """Return the ends of partitions; wait for brokers that know their leaders."""
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # theirs
        asked = {TopicPartition(topic, one): latest for one in range(partitions)}
        found: list[int] = []

        def answered() -> bool:
            futures = self._admin.list_offsets(asked, isolation_level=level)
            try:
                found[:] = [one.result(30).offset for one in futures.values()]
            except KafkaException:
                self._admin.list_topics(timeout=10)  # else it asks a former leader
                return False
            return True

        wait_until(answered, _PATIENCE_S, "the ends are known")
        return found

    def open_partitions(self, topic: str, partitions: int) -> int:
        """Count those where a transaction is open."""
        ends = self.ends(topic, partitions, IsolationLevel.READ_UNCOMMITTED)
        stable = self.ends(topic, partitions, IsolationLevel.READ_COMMITTED)
        return sum(one < other for one, other in zip(stable, ends, strict=True))

    def end_without_markers(
        self, topic: str, partitions: int, *ends: Callable[[], object]
    ) -> None:
        """Let the coordinator end transactions while the second broker is dead."""
        self.second.kill()
        wait_until(
            lambda: not self.have_leaders(topic), _PATIENCE_S, "it has no leader"
        )
        for end in ends:
            end()
        wait_until(
            lambda: self.first.log.read_text("utf-8").count(_LEFT_OUT) == len(ends),
            _PATIENCE_S,
            "the coordinator leaves out partitions",
        )
        self.second.start()
        wait_until(lambda: self.have_leaders(topic), _PATIENCE_S, "leaders are back")
        assert self.open_partitions(topic, partitions) == partitions

    def have_leaders(self, topic: str) -> bool:
        found = self._admin.list_topics(topic, timeout=10).topics[topic].partitions
        return all(one.leader >= 0 for one in found.values())


def producer(kafka: KafkaServer, name: str) -> Producer:
    properties = {
        "bootstrap.servers": kafka.bootstrap,
        "transactional.id": name,
        "transaction.timeout.ms": 300_000,
        "log_level": 0,
    }
    made = Producer(properties)
    made.init_transactions(30)
    return made


def fence(kafka: LocalKafka, name: str) -> None:
    """Let the coordinator abort what a producer before has open."""
    producer(kafka, name)


@contextmanager
def cluster(own_kafka: OwnKafka) -> Iterator[Cluster]:
    first = own_kafka()
    fence(first, "any")  # now coordinators have their topic, on the first broker alone
    with SecondBroker(first) as second:
        yield Cluster(first, second)


def sink_of(kafka: KafkaServer, told: str, timeout_ms: int = 30_000) -> dict[str, Any]:
    return {
        "delivery": "transactional",
        "commit_interval": "3s",
        "positions_topic": told,
        "producer": {
            "bootstrap.servers": kafka.bootstrap,
            "transaction.timeout.ms": f"{timeout_ms}",
        },
    }


@pytest.mark.takes(60)
def test_of_an_open_transaction_nothing_comes_twice(
    own_kafka: OwnKafka, database: Database, runs: Runs
) -> None:
    """Else the next transaction there commits its records with its own."""
    topic, told, partitions = f"{runs.prefix}public.t", f"told_{runs.prefix}", 2
    database.execute(_TABLE)
    with (
        cluster(own_kafka) as brokers,
        Reader(brokers.first.bootstrap, runs.prefix) as reader,
    ):
        brokers.create({topic: 2}, partitions)
        brokers.create({told: 1}, 1)
        with runs(database.dsn, sink=sink_of(brokers.first, told)) as walstream:
            database.execute("INSERT INTO t SELECT generate_series(1, 20)")
            reader.count(20)
            level = IsolationLevel.READ_UNCOMMITTED
            ends = brokers.ends(topic, partitions, level)
            database.execute("INSERT INTO t SELECT generate_series(21, 40)")
            wait_until(
                lambda: sum(brokers.ends(topic, partitions, level)) >= sum(ends) + 20,
                _PATIENCE_S,
                "the records are there",
            )
            walstream.kill()
            assert brokers.open_partitions(topic, partitions) == partitions
            name = f"{walstream.slot}-{system(database)}-{SINK}-stream"
            fenced = partial(fence, brokers.first, name)
            brokers.end_without_markers(topic, partitions, fenced)
            walstream.start().until(_ENDED)
            database.execute("INSERT INTO t SELECT generate_series(41, 50)")
            records = reader.count(50)
            times = Counter(str((record.op.new or [])[0]) for record in records)
            assert times == {f"{one}": 1 for one in range(1, 51)}
            assert walstream.terminate() == 0
        assert brokers.open_partitions(topic, partitions) == 0


@pytest.mark.fault_long
@pytest.mark.takes(60)
def test_a_partition_without_a_leader_is_looked_at_once_it_has_one(
    own_kafka: OwnKafka, database: Database, runs: Runs
) -> None:
    """As where a broker is away for longer than the sink waits at its start."""
    topic, told, partitions = f"{runs.prefix}public.t", f"told_{runs.prefix}", 2
    database.execute(_TABLE)
    with (
        cluster(own_kafka) as brokers,
        Reader(brokers.first.bootstrap, runs.prefix) as reader,
    ):
        brokers.create({topic: 2}, partitions)
        brokers.create({told: 1}, 1)
        with runs(database.dsn, sink=sink_of(brokers.first, told)) as walstream:
            database.execute("INSERT INTO t SELECT generate_series(1, 20)")
            reader.count(20)
            level = IsolationLevel.READ_UNCOMMITTED
            ends = brokers.ends(topic, partitions, level)
            database.execute("INSERT INTO t SELECT generate_series(21, 40)")
            wait_until(
                lambda: sum(brokers.ends(topic, partitions, level)) >= sum(ends) + 20,
                _PATIENCE_S,
                "the records are there",
            )
            walstream.kill()
            brokers.second.kill()
            wait_until(
                lambda: not brokers.have_leaders(topic), _PATIENCE_S, "it has no leader"
            )
            walstream.start().until("partitions have no leader")
            database.execute("INSERT INTO t SELECT generate_series(41, 50)")
            brokers.second.start()
            walstream.until(_ENDED)
            records = reader.count(50)
            times = Counter(str((record.op.new or [])[0]) for record in records)
            assert times == {f"{one}": 1 for one in range(1, 51)}
            assert walstream.terminate() == 0
        assert brokers.open_partitions(topic, partitions) == 0


@pytest.mark.fault_long
@pytest.mark.takes(60)
def test_an_open_transaction_is_ended_of_whichever_producer(
    own_kafka: OwnKafka, database: Database, runs: Runs
) -> None:
    """One of a position lets a sink wait for ever for the end of positions."""
    topic, told = f"{runs.prefix}public.t", f"told_{runs.prefix}"
    database.execute(_TABLE)
    with (
        cluster(own_kafka) as brokers,
        Reader(brokers.first.bootstrap, runs.prefix) as reader,
    ):
        brokers.create({topic: 2, told: 2}, 1)
        with runs(database.dsn, sink=sink_of(brokers.first, told)) as walstream:
            database.execute("INSERT INTO t VALUES (1)")
            reader.count(1)
            assert walstream.terminate() == 0
            sink = f"{walstream.slot}-{system(database)}-{SINK}"
            streams, detached = f"{sink}-stream", f"{sink}-detached"
            late = producer(brokers.first, streams)
            late.begin_transaction()
            late.produce(told, b"{}", streams.encode(), 0)
            assert late.flush(30) == 0
            late = producer(brokers.first, detached)
            late.begin_transaction()
            op = insert(1 << 60, 0, ["3"], Table("public", "t", ("id",)))
            late.produce(topic, OpEncoder(op.table).encode(op), b"", 0)
            assert late.flush(30) == 0
            brokers.end_without_markers(
                *(told, 1),
                partial(fence, brokers.first, streams),
                partial(fence, brokers.first, detached),
            )
            walstream.start().until(_ENDED)
            database.execute("INSERT INTO t VALUES (2)")
            reader.count(2)
            assert walstream.terminate() == 0
        assert brokers.open_partitions(told, 1) == 0
        assert brokers.open_partitions(topic, 1) == 0


@pytest.mark.fault_long
@pytest.mark.takes(60)
def test_what_was_committed_without_markers_is_there(
    own_kafka: OwnKafka, database: Database, runs: Runs
) -> None:
    """The state folder knows of it, so that it never comes again."""
    topic, told = f"{runs.prefix}public.t", f"told_{runs.prefix}"
    database.execute(_TABLE)
    with (
        cluster(own_kafka) as brokers,
        Reader(brokers.first.bootstrap, runs.prefix) as reader,
    ):
        brokers.create({topic: 2, told: 2}, 1)
        with runs(database.dsn, sink=sink_of(brokers.first, told, 12_000)) as walstream:
            database.execute("INSERT INTO t VALUES (1)")
            ((last,),) = ((one.op.lsn,) for one in reader.count(1))
            assert walstream.terminate() == 0
            name = f"{walstream.slot}-{system(database)}-{SINK}-stream"
            late = producer(brokers.first, name)
            late.begin_transaction()
            for number in range(3):
                op = insert(last, number, [f"{number}"], Table("public", "t", ("id",)))
                late.produce(topic, OpEncoder(op.table).encode(op), b"", 0)
            position = TransactionPosition(last, 0, "")
            late.produce(told, position.encode(), name.encode(), 0)
            assert late.flush(30) == 0
            brokers.end_without_markers(topic, 1, partial(late.commit_transaction, 30))
            walstream.start().until(_ENDED)
            database.execute("INSERT INTO t VALUES (5)")
            reader.until(lambda some: some and str((some[-1].op.new or [])[0]) == "5")
            ids = [str((one.op.new or [])[0]) for one in reader.read()]
            # the copy that commits them is of the last one
            assert ids == ["1", "0", "1", "2", "2", "5"]
            assert walstream.terminate() == 0
        assert brokers.open_partitions(told, 1) == 0


@pytest.mark.takes(30)
def test_what_others_have_open_in_the_topic_of_positions_holds_up_no_start(
    kafka: KafkaServer, database: Database, runs: Runs
) -> None:
    """A sink that is frozen before its commit may have one open: for five minutes."""
    told = f"told_{runs.prefix}"
    database.execute(_TABLE)
    TopicAdmin(kafka.bootstrap).create(told, 1)
    other = producer(kafka, f"{runs.prefix}other")
    other.begin_transaction()
    other.produce(told, b"{}", b"other", 0)
    assert other.flush(30) == 0
    sink = sink_of(kafka, told) | {"commit_interval": "100ms"}
    with runs(database.dsn, sink=sink) as walstream:
        with Reader(kafka.bootstrap, runs.prefix) as reader:
            database.execute("INSERT INTO t VALUES (1)")
            reader.until(bool, 90)
            # now its own position is behind the other's record
            assert walstream.terminate() == 0
            walstream.start()
            database.execute("INSERT INTO t VALUES (2)")
            reader.until(lambda found: len(found) == 2, 90)
        assert walstream.terminate() == 0
    other.commit_transaction(30)  # it was open all the time


def state_of_sink(walstream: Walstream) -> object:
    status = as_json(walstream.configuration, "status", "status")
    return status["sources"][0]["sinks"][0]["state"]


@pytest.mark.fault_long
@pytest.mark.takes(60)
def test_a_coordinator_that_is_away_is_told_of(
    own_kafka: OwnKafka, database: Database, runs: Runs
) -> None:
    """All else answers: nothing but the records that do not come would show it."""
    topic, told = f"{runs.prefix}public.t", f"told_{runs.prefix}"
    database.execute(_TABLE)
    first = own_kafka()
    with SecondBroker(first) as second:
        brokers = Cluster(first, second)
        brokers.create({"__transaction_state": 2}, 4)
        brokers.create({topic: 1, told: 1}, 1)
        with (
            runs(database.dsn, sink=sink_of(first, told)) as walstream,
            Reader(first.bootstrap, runs.prefix) as reader,
        ):
            database.execute("INSERT INTO t VALUES (1)")
            reader.count(1)
            walstream.kill()
            second.kill()
            walstream.start().until("coordinator of transactions does not answer")
            wait_until(lambda: state_of_sink(walstream) == "waiting", 30, "it waits")
            database.execute("INSERT INTO t VALUES (2)")
            second.start()
            walstream.until("coordinator answers")
            reader.count(2)
            assert walstream.terminate() == 0


@pytest.mark.takes(60)
def test_what_was_committed_without_markers_outlasts_an_abort(
    own_kafka: OwnKafka, database: Database, runs: Runs
) -> None:
    """A crash in the next transaction of the producer lets Kafka abort both."""
    topic, told = f"{runs.prefix}public.t", f"told_{runs.prefix}"
    database.execute(_TABLE)
    with (
        cluster(own_kafka) as brokers,
        Reader(brokers.first.bootstrap, runs.prefix) as reader,
    ):
        brokers.create({topic: 2}, 2)
        brokers.create({told: 1}, 1)
        with runs(database.dsn, sink=sink_of(brokers.first, told, 12_000)) as walstream:
            database.execute("INSERT INTO t VALUES (1)")
            ((last,),) = ((one.op.lsn,) for one in reader.count(1))
            assert walstream.terminate() == 0
            name = f"{walstream.slot}-{system(database)}-{SINK}-stream"
            late = producer(brokers.first, name)
            encode = OpEncoder(Table("public", "t", ("id",))).encode

            def put(number: int, lsn: int, partition: int) -> None:
                table = Table("public", "t", ("id",))
                value = encode(insert(lsn, number, [f"{number}"], table))
                late.produce(topic, value, f"{number}".encode(), partition)

            late.begin_transaction()
            for number in range(11, 15):
                put(number, last, number % 2)
            position = TransactionPosition(last, 0, "")
            late.produce(told, position.encode(), name.encode(), 0)
            assert late.flush(30) == 0
            brokers.end_without_markers(topic, 2, partial(late.commit_transaction, 30))
            late.begin_transaction()
            put(21, 1 << 60, 0)
            assert late.flush(30) == 0  # and is killed
            walstream.start().until("they are sent again")
            database.execute("INSERT INTO t VALUES (5)")

            def ids() -> set[str]:
                return {str((one.op.new or [])[0]) for one in reader.read()}

            wait_until(lambda: "5" in ids(), _PATIENCE_S, "the next one comes")
            assert ids() == {"1", "11", "12", "13", "14", "5"}
            assert walstream.terminate() == 0
        assert brokers.open_partitions(topic, 2) == 0
