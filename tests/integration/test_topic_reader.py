"""Reading topics from offsets, on a real broker."""

import re
import time
from collections.abc import Iterator, Mapping

import pytest
from confluent_kafka import Producer

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.oracles.topic_reader import TopicAdmin
from walstream.cli.tail.change import read
from walstream.cli.tail.follow import Follower, Span
from walstream.cli.tail.last import LastChanges
from walstream.errors import ConfigError, TopicLost, Transient, WalstreamError
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.topic_reader import TopicReader, TopicRecord

STAMP_MS = 1_700_000_000_000


@pytest.fixture
def topic(kafka: KafkaServer, topic_prefix: str) -> str:
    """Make one of two partitions, with three records in the second."""
    name = f"{topic_prefix}read"
    TopicAdmin(kafka.bootstrap).create(name, 2, retention_ms="-1")
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for value in ("a", "b", None):
        producer.produce(
            name,
            value,
            key=f"key of {value}",
            partition=1,
            timestamp=STAMP_MS,
            headers=[("h", b"1"), ("h", None)],
        )
    assert producer.flush(30) == 0
    return name


@pytest.fixture
def reader(kafka: KafkaServer, topic: str) -> Iterator[TopicReader]:
    with TopicReader({"bootstrap.servers": kafka.bootstrap}) as opened:
        # the client that created it may know it sooner than this one
        wait_until(lambda: opened.topics().get(topic) == 2, 30, "topic is known")
        yield opened


def read_all(
    reader: TopicReader, ends: dict[Partition, OffsetBounds]
) -> list[TopicRecord]:
    records: list[TopicRecord] = []
    deadline = time.monotonic() + 30
    while not reader.reached(ends):
        assert time.monotonic() < deadline
        records += reader.poll(0.1)
    return records


def test_bounds_are_the_oldest_offset_and_the_end(
    reader: TopicReader, topic: str
) -> None:
    assert reader.bounds([topic]) == {
        Partition(topic, 0): OffsetBounds(0, 0),
        Partition(topic, 1): OffsetBounds(0, 3),
    }


def test_records_come_whole_and_tombstones_too(reader: TopicReader, topic: str) -> None:
    ends = reader.bounds([topic])
    reader.assign({partition: bounds.first for partition, bounds in ends.items()})
    records = read_all(reader, ends)
    assert [record.value for record in records] == [b"a", b"b", None]
    assert records[0] == TopicRecord(
        topic=topic,
        partition=1,
        offset=0,
        key=b"key of a",
        value=b"a",
        headers=[("h", b"1"), ("h", None)],
        timestamp_ms=STAMP_MS,
    )


def test_reading_begins_at_the_offset_that_was_asked_for(
    reader: TopicReader, topic: str
) -> None:
    reader.assign({Partition(topic, 1): 2})
    (record,) = read_all(reader, {Partition(topic, 1): OffsetBounds(0, 3)})
    assert record.offset == 2


def test_limit_bounds_what_one_poll_takes(reader: TopicReader, topic: str) -> None:
    reader.assign({Partition(topic, 1): 0})
    assert len(reader.poll(30, limit=1)) == 1


def test_empty_partition_is_at_its_end_at_once(reader: TopicReader, topic: str) -> None:
    reader.assign({Partition(topic, 0): 0})
    assert reader.reached({Partition(topic, 0): OffsetBounds(0, 0)})


def test_a_partition_read_once_more_is_at_its_end_when_its_records_came(
    reader: TopicReader, topic: str
) -> None:
    """The consumer's position is that of the assignment before for a moment."""
    second = Partition(topic, 1)
    for _ in range(30):
        reader.assign({second: 0})
        assert len(read_all(reader, {second: OffsetBounds(0, 3)})) == 3


def test_unknown_topic_is_named(reader: TopicReader, topic_prefix: str) -> None:
    with pytest.raises(TopicLost, match=f"{topic_prefix}none"):
        reader.bounds([f"{topic_prefix}none"])


def test_offset_that_is_gone_is_an_error_and_no_jump(
    reader: TopicReader, topic: str
) -> None:
    reader.assign({Partition(topic, 1): 99})
    with pytest.raises(WalstreamError, match=topic):
        reader.poll(30)


def test_error_of_one_partition_takes_no_record_of_another_with_it(
    reader: TopicReader, topic: str
) -> None:
    reader.assign({Partition(topic, 0): 99, Partition(topic, 1): 0})
    offsets: list[int] = []
    errors = 0
    deadline = time.monotonic() + 30
    while not (errors and offsets == [0, 1, 2]):
        assert time.monotonic() < deadline
        try:
            offsets += [record.offset for record in reader.poll(0.1)]
        except TopicLost:
            errors += 1


def test_every_partition_that_is_read_no_further_is_named(
    reader: TopicReader, topic: str
) -> None:
    both = {Partition(topic, 0), Partition(topic, 1)}
    reader.assign(dict.fromkeys(both, 99))
    told: list[TopicLost] = []
    deadline = time.monotonic() + 30
    while sum(len(one.partitions) for one in told) < len(both):
        assert time.monotonic() < deadline
        try:
            assert reader.poll(0.1) == []
        except TopicLost as lost:
            told.append(lost)
    assert {one for error in told for one in error.partitions} == both
    for error in told:
        assert all(
            f"{name}[{number}]" in str(error) for name, number in error.partitions
        )


def test_a_loss_is_told_though_another_partition_gave_nothing_yet(
    kafka: KafkaServer, topic_prefix: str
) -> None:
    """Retention takes of both: what an aborted transaction left, and what is unread."""
    name = f"{topic_prefix}both"
    admin = TopicAdmin(kafka.bootstrap)
    admin.create(name, 2, retention_ms="-1")
    aborted = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name})
    aborted.init_transactions(30)
    aborted.begin_transaction()
    for _ in range(10):
        aborted.produce(name, b"aborted", partition=0)
    assert aborted.flush(30) == 0
    aborted.abort_transaction(30)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "batch.num.messages": 9})
    for _ in range(3000):
        producer.produce(name, b"x" * 1000, partition=1)
        producer.poll(0)
    assert producer.flush(30) == 0
    little = {  # is fetched at once, so that most is still to come
        "queued.min.messages": 10,
        "queued.max.messages.kbytes": 64,
        "fetch.message.max.bytes": 20_000,
        "fetch.max.bytes": 20_000,
        "message.max.bytes": 10_000,
    }
    with TopicReader({"bootstrap.servers": kafka.bootstrap, **little}) as reader:
        wait_until(lambda: reader.topics().get(name) == 2, 30, "topic is known")
        span = Span(from_beginning=True)
        follower = Follower(reader, [name], span, lambda _: None)
        follower.begin()
        end = time.monotonic() + 60
        batches = follower.batches(lambda: time.monotonic() > end)
        assert next(batches)[0].partition == 1
        admin.delete_before(name, 10, 0)
        admin.delete_before(name, 2900, 1)
        with pytest.raises(TopicLost, match=re.escape(f"{name}[1]")):
            list(batches)


def test_partitions_come_and_go_while_others_are_read(
    reader: TopicReader, topic: str
) -> None:
    reader.assign({Partition(topic, 0): 0})
    reader.add({Partition(topic, 1): 1})
    ends = {Partition(topic, 1): OffsetBounds(0, 3)}
    assert [record.offset for record in read_all(reader, ends)] == [1, 2]
    reader.drop([Partition(topic, 1)])
    reader.add({Partition(topic, 1): 2})
    assert [record.offset for record in read_all(reader, ends)] == [2]


def test_bounds_of_many_partitions_are_asked_for_at_once(
    reader: TopicReader, kafka: KafkaServer, topic_prefix: str
) -> None:
    many = f"{topic_prefix}many"
    TopicAdmin(kafka.bootstrap).create(many, 100)
    wait_until(lambda: reader.topics().get(many) == 100, 30, "topic is known")
    assert set(reader.bounds([many]).values()) == {OffsetBounds(0, 0)}


def test_an_open_transaction_is_no_part_of_the_topic_yet(
    reader: TopicReader, kafka: KafkaServer, topic: str
) -> None:
    partition = Partition(topic, 0)
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap, "transactional.id": topic}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(30) == 0
    assert reader.bounds([topic])[partition] == OffsetBounds(0, 0)
    producer.commit_transaction(30)
    ends = {
        partition: OffsetBounds(0, 2)
    }  # with the marker, which comes a little later
    wait_until(lambda: reader.bounds([topic]).items() >= ends.items(), 30, "it ends")
    reader.assign({partition: 0})
    assert [record.value for record in read_all(reader, ends)] == [b"open"]


def test_why_no_broker_answers_is_told() -> None:
    with TopicReader({"bootstrap.servers": "127.0.0.1:1"}, timeout_s=3) as reader:
        with pytest.raises(Transient, match=r"127\.0\.0\.1:1.*refused") as raised:
            reader.topics()
        assert "brokers run" in raised.value.hint


def test_property_that_the_client_cannot_take_is_named() -> None:
    with pytest.raises(ConfigError, match=r"security\.protocol"):
        TopicReader({"bootstrap.servers": "h", "security.protocol": "wrong"})


@pytest.mark.fault_long
def test_rights_on_a_group_are_not_needed(own_kafka: OwnKafka) -> None:
    """No group is used, but librdkafka asks for one."""
    bootstrap = own_kafka(
        {
            "authorizer.class.name": (
                "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
            ),
            "allow.everyone.if.no.acl.found": "true",
        }
    ).bootstrap
    admin = TopicAdmin(bootstrap)
    admin.create("t")
    admin.deny_groups()
    producer = Producer({"bootstrap.servers": bootstrap})
    with TopicReader({"bootstrap.servers": bootstrap}) as reader:
        reader.assign({Partition("t", 0): 0})
        deadline = time.monotonic() + 5  # it is refused within the first second
        while time.monotonic() < deadline:
            assert reader.poll(0.1) == []
        producer.produce("t", b"x")
        assert producer.flush(30) == 0
        assert [record.value for record in reader.poll(30)] == [b"x"]


@pytest.mark.parametrize("left", [1, 0])
def test_the_last_changes_are_those_that_retention_left_meanwhile(
    reader: TopicReader, topic: str, kafka: KafkaServer, left: int
) -> None:
    last = LastChanges(reader, reader.bounds([topic]), 3)
    TopicAdmin(kafka.bootstrap).delete_before(topic, 3 - left, 1)
    offsets = [one.record.offset for one in last.read(read)]
    assert offsets == [0, 1, 2][3 - left :]


def test_the_beginning_is_what_retention_left_meanwhile(
    reader: TopicReader, topic: str, kafka: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def assign(offsets: Mapping[Partition, int]) -> None:
        TopicAdmin(kafka.bootstrap).delete_before(topic, 2, 1)
        TopicReader.assign(reader, offsets)

    monkeypatch.setattr(reader, "assign", assign)
    span = Span(from_beginning=True, until_end=True)
    follower = Follower(reader, [topic], span, lambda _: None)
    follower.begin()
    end = time.monotonic() + 30
    batches = list(follower.batches(lambda: time.monotonic() > end))
    assert [one.offset for batch in batches for one in batch] == [2]
