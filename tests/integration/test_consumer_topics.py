"""Topics by pattern, and what a consumer says of them."""

import logging

import pytest

from consumer import BasicConsumer
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.loads.op_record import Feed
from tests.support.oracles.topic_reader import TopicAdmin
from tests.support.programs.consumer_thread import Running, Setting, apply

pytestmark = pytest.mark.same_on_15


def feed_of(kafka: KafkaServer, topic: str, partitions: int = 1) -> Feed:
    TopicAdmin(kafka.bootstrap).create(topic, partitions)
    return Feed(kafka.bootstrap, topic)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_new_topic_that_matches_joins_without_a_restart(
    protocol: str,
    kafka: KafkaServer,
    topic_prefix: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    shop = f"{topic_prefix}shop"
    one = feed_of(kafka, f"{shop}.orders", 2)
    other = feed_of(kafka, f"{topic_prefix}shopping.orders")
    for feed in (one, other):
        feed.insert(1)
        feed.flush()
    seen: list[tuple[str, str | None]] = []
    consumer = BasicConsumer(
        lambda op: seen.append((op.record.topic, op.new["id"])),
        group=f"{topic_prefix}copies",
        topics=f"{shop}.*",
        kafka={
            "bootstrap.servers": kafka.bootstrap,
            "group.protocol": protocol,
            "topic.metadata.refresh.interval.ms": 200,
        },
    )
    with caplog.at_level(logging.INFO, "consumer"), consumer:
        running = Running(consumer)
        wait_until(lambda: len(seen) == 1, 60, "the first topic is read")
        late = feed_of(kafka, f"{shop}.customers")
        late.insert(2)
        late.flush()
        wait_until(lambda: len(seen) == 2, 60, "the new topic joined")
    running.join()
    assert seen == [(f"{shop}.orders", "1"), (f"{shop}.customers", "2")]
    group = f"group {topic_prefix}copies:"
    assert f"{group} joining, to read {shop}.*" in caplog.messages
    assert f"{group} reading {shop}.orders, 2 partitions" in caplog.messages
    assert (
        f"{group} reading {shop}.customers, 1 partition; {shop}.orders, 2 partitions;"
        " 3 partitions in all"
    ) in caplog.messages


def test_a_new_topic_is_read_from_its_beginning_exactly_once(setting: Setting) -> None:
    first = setting.make()
    first.insert(0)
    first.flush()
    setting.topic, name = setting.topic[:-1] + "*", setting.topic
    refresh = {"topic.metadata.refresh.interval.ms": 200}
    with setting.running(apply, kafka=refresh):
        setting.until(1)
        late = feed_of(setting.kafka, f"{name}2", 2)
        for number in range(1, 20):
            late.insert(number, number % 2)
        late.flush()
        setting.until(20)
    with setting.running(apply, kafka=refresh):
        first.insert(20)
        first.flush()
        setting.until(21)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_pattern_passes_over_kafka_s_own_topics(
    protocol: str, kafka: KafkaServer, topic_prefix: str
) -> None:
    """Whoever matches it: the client, or the broker."""
    orders = f"{topic_prefix}orders"
    for topic in (f"__{orders}", orders):
        feed = feed_of(kafka, topic)
        feed.insert(1)
        feed.flush()
    seen: list[str] = []
    consumer = BasicConsumer(
        lambda op: seen.append(op.record.topic),
        group=f"{topic_prefix}copies",
        topics=f"*{orders}",
        kafka={"bootstrap.servers": kafka.bootstrap, "group.protocol": protocol},
    )
    with consumer:
        running = Running(consumer)
        wait_until(lambda: seen, 60, "something is read")
        wait_until(consumer.lag, 60, "the lag is known")
        assert [place.topic for place in consumer.lag()] == [orders]
    running.join()
    assert seen == [orders]
