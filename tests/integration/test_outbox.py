"""A quiet stream's records go at once; those of a stream that goes on fill batches."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.oracles.topic_reader import TopicAdmin
from walstream.errors import WalstreamError
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.producer_config import producer_properties
from walstream.kafka.topic import Topic
from walstream.pipeline.ledger import (
    Counted,
)

LIMIT = 1 << 20
FOR_EVER = {"linger.ms": 900_000}


@pytest.fixture
def topic(kafka: KafkaServer, topic_prefix: str) -> Topic:
    name = f"{topic_prefix}records"
    TopicAdmin(kafka.bootstrap).create(name)
    found = Topic(name, "id", 1, LIMIT)
    found.unproven.clear()
    return found


@contextmanager
def outbox(
    kafka: KafkaServer, *, hurries: bool, room: int = 10_000
) -> Iterator[OrderedProducer]:
    given = {
        "bootstrap.servers": kafka.bootstrap,
        "queue.buffering.max.messages": room,
        **FOR_EVER,
    }
    properties = producer_properties(given, LIMIT, LIMIT)
    box = OrderedProducer("kafka", properties, hurries=hurries)
    yield box
    box.close(0)


def put(box: OrderedProducer, topic: Topic, counted: Counted) -> None:
    box.put(topic, b"v", b"k", 0, int(time.time() * 1000), counted)


def test_a_record_that_none_follows_is_sent_before_its_linger_ends(
    kafka: KafkaServer, topic: Topic
) -> None:
    counted = Counted()
    with outbox(kafka, hurries=True) as box:
        put(box, topic, counted)
        wait_until(lambda: box.serve() and not counted.undelivered, 30, "delivered")


def test_records_that_keep_coming_wait_for_each_other(
    kafka: KafkaServer, topic: Topic
) -> None:
    known, counted = Counted(), Counted()
    with outbox(kafka, hurries=True) as box:
        put(box, topic, known)
        wait_until(lambda: box.serve() and not known.undelivered, 30, "delivered")
        for _ in range(1000):
            put(box, topic, counted)
            assert box.serve()
        assert counted.undelivered == 1000
        wait_until(lambda: box.serve() and not counted.undelivered, 30, "delivered")


def test_records_that_leave_no_room_wait_for_none(
    kafka: KafkaServer, topic: Topic
) -> None:
    counted = Counted()
    with outbox(kafka, hurries=True, room=100) as box:
        for _ in range(150):
            put(box, topic, counted)
        assert not box.has_room
        wait_until(lambda: box.serve(busy=True), 30, "there is room again")
        assert counted.undelivered < 150


def test_an_operators_linger_holds(kafka: KafkaServer, topic: Topic) -> None:
    counted = Counted()
    with outbox(kafka, hurries=False) as box:
        put(box, topic, counted)
        for _ in range(1000):
            assert box.serve()
        assert counted.undelivered == 1


def test_nothing_is_produced_behind_a_large_record_before_it_is_delivered(
    kafka: KafkaServer, topic: Topic
) -> None:
    counted, after = Counted(), Counted()
    with outbox(kafka, hurries=True) as box:
        now = int(time.time() * 1000)
        box.put_alone(topic, bytes(900_000), b"k", 0, now, counted)
        put(box, topic, after)
        assert not box.has_room
        sent = []

        def served() -> bool:
            roomy = box.serve()
            sent.append((counted.undelivered, after.undelivered))
            return roomy and not after.undelivered

        wait_until(served, 30, "both are delivered")
    assert (1, 0) not in sent
    assert counted.undelivered == 0


def test_a_large_record_that_is_refused_stops_the_producer(
    kafka: KafkaServer, topic: Topic
) -> None:
    counted = Counted()
    with outbox(kafka, hurries=True) as box:
        now = int(time.time() * 1000)
        box.put_alone(topic, os.urandom(2 << 20), b"k", 0, now, counted)

        def fails() -> bool:
            try:
                box.serve()
            except WalstreamError:
                return True
            return False

        wait_until(fails, 30, "it is refused")
    assert counted.undelivered == 1
