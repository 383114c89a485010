"""Records that belong to no transaction, beside those of one that is long."""

from typing import Any

import pytest

from tests.integration.test_transactional import TRANSACTIONAL, insert, raw
from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader

pytestmark = pytest.mark.same_on_15


def test_heartbeats_leave_a_long_transaction_whole(
    database: Database, runs: Runs, kafka: KafkaServer, topic_prefix: str
) -> None:
    """Several come while it is open: none of them ends it."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    sink = {
        **TRANSACTIONAL,
        "format": "debezium",
        "topic": topic_prefix + "{schema}.{table}",
        "debezium": {"name": f"beats{topic_prefix}", "heartbeat": "100ms"},
    }
    rows = 100_000
    with runs(database.dsn, sink=sink) as walstream:
        walstream.streaming()
        database.execute(insert(1, rows))
        with raw(kafka, f"{topic_prefix}public.t") as reader:
            reader.until(lambda records: len(records) >= rows, 120)
        assert not walstream.said("defect"), walstream.text
        assert walstream.terminate() == 0


def test_messages_alone_in_their_transactions_are_there_once(
    database: Database,
    runs: Runs,
    kafka: KafkaServer,
    own_kafka: OwnKafka,
    topic_prefix: str,
) -> None:
    """No op tells how far they are, and another sink holds the state's position."""
    broker = own_kafka()
    other = {
        "topic": topic_prefix + "{schema}.{table}",
        "producer": {"bootstrap.servers": broker.bootstrap},
    }
    messages = {"prefixes": ["m"], "topic": topic_prefix + "m.{prefix}"}
    sink = {**TRANSACTIONAL, "messages": messages}
    emit = "SELECT pg_logical_emit_message(true, 'm', %s)"
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    walstream = runs(database.dsn, sink=sink, others={"other-one": other})
    with walstream, raw(kafka, f"{topic_prefix}m.m") as reader:
        walstream.streaming()
        database.execute(insert(1, 1))
        with Reader(broker.bootstrap, topic_prefix) as second:
            second.count(1)
        broker.freeze()
        database.execute(insert(2, 2))  # held by the other one
        for number in range(10):
            database.execute(emit, str(number))
        reader.count(10)
        walstream.kill()
        broker.thaw()
        walstream.start().streaming()
        database.execute(emit, "10")

        def came(records: list[Any]) -> bool:
            return any(one.op == 10 for one in records)

        found: list[Any] = reader.until(came)
        assert [one.op for one in found] == list(range(11))
        assert walstream.terminate() == 0


def test_brokers_may_allow_less_than_the_longest_transaction(
    database: Database, runs: Runs, own_kafka: OwnKafka, topic_prefix: str
) -> None:
    """What it takes over is no transaction that lasts longer."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    broker = own_kafka({"transaction.max.timeout.ms": "60000"})
    producer = {"bootstrap.servers": broker.bootstrap}
    with (
        runs(database.dsn, sink={**TRANSACTIONAL, "producer": producer}) as walstream,
        Reader(broker.bootstrap, topic_prefix) as reader,
    ):
        walstream.streaming()
        database.execute(insert(1, 3))
        reader.count(3)
        assert walstream.terminate() == 0


@pytest.mark.parametrize("delivery", ["transactional", "idempotent"])
def test_a_clean_stop_before_the_stream_moved_says_nothing_of_the_run_before(
    delivery: str,
    database: Database,
    runs: Runs,
    reader: Reader,
    own_kafka: OwnKafka,
) -> None:
    """That one was killed when Kafka had more than the state's position tells."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    broker = own_kafka()
    other = {
        "topic": runs.prefix + "{schema}.{table}",
        "producer": {"bootstrap.servers": broker.bootstrap},
    }
    sink = {"delivery": delivery, "topic_partitions": 4}
    walstream = runs(database.dsn, sink=sink, others={"other-one": other})
    with walstream:
        walstream.streaming()
        database.execute(insert(1, 1))
        reader.count(1)
        with Reader(broker.bootstrap, runs.prefix) as second:
            second.count(1)
        broker.freeze()
        for number in range(2, 12):
            database.execute(insert(number, number))
        reader.count(11)
        walstream.kill()
        walstream.start().streaming()
        assert walstream.terminate() == 0
        broker.thaw()
        walstream.start().streaming()
        database.execute(insert(12, 12))
        reader.until(lambda some: any(one.new["id"] == "12" for one in some))
        assert walstream.terminate() == 0
        assert sorted(int(one.new["id"]) for one in reader.read()) == [*range(1, 13)]
