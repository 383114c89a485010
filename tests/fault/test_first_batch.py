"""A broker that refuses a producer's first batch, and takes the second, loses nothing.

KAFKA-14359. Here it refuses each first batch of each producer, since it is damaged.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.fault.test_kill_cycles import kill_worker, settle
from tests.simulation.kafka import BATCH, SimMessage
from tests.simulation.real.brokers import SimulatedBrokers
from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import PostgresServer
from tests.support.fixtures.server_origin import needs_own_servers
from tests.support.fixtures.walstream import streamed
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.op_order import OracleSlot
from tests.support.oracles.topic_reader import TopicAdmin
from tests.support.servers.brief_kafka import BriefKafka
from tests.support.servers.damaging_link import DamagingLink
from walstream.errors import Transient
from walstream.kafka.bulk_producer import BulkProducer, Outgoing
from walstream.kafka.producer_config import producer_properties
from walstream.kafka.topic_limits import DEFAULT_LIMIT
from walstream.testing.servers.port import HOST, free_port

pytestmark = pytest.mark.same_on_15

_SEED = 14359


@dataclass(frozen=True)
class Broker:
    """One that clients reach by way of a link."""

    link: DamagingLink
    data: Path | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.link.port}"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    needs_own_servers()
    port = free_port()
    settings = {"advertised.listeners": f"PLAINTEXT://{HOST}:{port}"}
    with BriefKafka(settings=settings) as kafka, DamagingLink(kafka.port, port) as link:
        yield Broker(link)


def test_librdkafka_reports_as_delivered_what_kafka_does_not_have(
    broker: Broker,
) -> None:
    """What a record's offset is looked at for; if this fails, that is needless."""
    TopicAdmin(broker.bootstrap).create("t")
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "batch.num.messages": 1,
        }
    )
    delivered: list[int | None] = []

    def report(error: object, message: Message) -> None:
        assert error is None
        delivered.append(message.offset())

    before = broker.link.damaged
    producer.list_topics("t", timeout=30)
    for number in range(3):
        producer.produce("t", str(number).encode(), on_delivery=report, partition=0)
    assert producer.flush(60) == 0
    assert broker.link.damaged == before + 1
    assert delivered == [None, 0, 1]


def test_a_tasks_first_record_in_a_partition_is_acknowledged_alone(
    broker: Broker,
) -> None:
    TopicAdmin(broker.bootstrap).create("rows")
    small = {"bootstrap.servers": broker.bootstrap, "batch.num.messages": 1}
    producer = producer_properties(small, DEFAULT_LIMIT, DEFAULT_LIMIT)
    sender = BulkProducer(Outgoing("k", producer), lambda: None)
    before = broker.link.damaged
    for number in range(3):
        sender.send("rows", str(number).encode(), b"k", 0)
        sender.sent += 1
    sender.finish()
    assert broker.link.damaged == before + 1
    assert sender.last == {0: 2}, "all are there"


def test_a_chunk_is_not_delivered_where_a_broker_forgot_its_producer_meanwhile() -> (
    None
):
    """What reports of successes are for: a report of errors alone would say nothing."""
    needs_own_servers()
    port = free_port()
    settings = {
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "producer.id.expiration.ms": "1000",
        "producer.id.expiration.check.interval.ms": "200",
    }
    with BriefKafka(settings=settings) as kafka, DamagingLink(kafka.port, port) as link:
        TopicAdmin(f"{HOST}:{port}").create("rows")
        small = {"bootstrap.servers": f"{HOST}:{port}", "batch.num.messages": 1}
        producer = producer_properties(small, DEFAULT_LIMIT, DEFAULT_LIMIT)
        sender = BulkProducer(Outgoing("k", producer), lambda: None)
        sender.send("rows", b"0", b"k", 0)
        while 0 not in sender.reports:
            sender.serve(0.1, flush=True)
        time.sleep(3)
        link.sequence = 1
        before = link.damaged
        for number in range(1, 3):
            sender.send("rows", str(number).encode(), b"k", 0)
        sender.sent = 3
        with pytest.raises(Transient, match="did not say where it is"):
            sender.finish()
        assert link.damaged == before + 1
        with Consumer({"bootstrap.servers": f"{HOST}:{port}", "group.id": "g"}) as they:
            they.assign([TopicPartition("rows", 0, 0)])
            assert [one.value() for one in they.consume(2, 30)] == [b"0", b"2"]


def test_the_simulation_reports_the_same() -> None:
    """Of what it is searched with; see the test before."""
    brokers = SimulatedBrokers(_SEED)
    brokers.create("t")
    brokers.cluster.refusing_until = 60.0
    producer = brokers.producer()
    delivered: list[int | None] = []

    def report(error: object, message: SimMessage) -> None:
        assert error is None
        delivered.append(message.offset())

    for number in range(2 * BATCH):
        producer.produce("t", str(number).encode(), None, 0, report)
    while len(producer):
        producer.poll(1.0)
    assert delivered == [None] * BATCH + [*range(BATCH)]
    taken = [str(number).encode() for number in range(BATCH, 2 * BATCH)]
    assert brokers.contents("t")[0] == taken


def test_what_is_refused_of_each_new_producer_is_sent_again(
    newest_postgres: PostgresServer, broker: Broker, tmp_path: Path
) -> None:
    link = broker.link
    met = len(link.producers)
    small = {"bootstrap.servers": broker.bootstrap, "batch.num.messages": 2}
    sink = {"topic_partitions": 4, "producer": small}
    with streamed(newest_postgres, broker, tmp_path, before=TABLE, sink=sink) as stream:
        oracle = OracleSlot(stream.database)
        with Load(stream.database.dsn, _SEED) as load:
            for _ in range(2):
                wait_until(partial(link.has_met, met + 1), 60, "it is refused")
                load.wait_for_more(20)
                met = len(link.producers)
                kill_worker(stream.walstream.worker_pid())
                load.wait_for_more(20)  # are there when the next one begins
        assert settle(stream, oracle) == 0
        said = stream.walstream.text
        assert "did not say where it is" not in said, "it waited for the first one"
