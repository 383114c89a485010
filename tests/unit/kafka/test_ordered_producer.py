"""Behind a record that failed nothing is produced; tests/integration asks a broker."""

from collections.abc import Iterator

import pytest

from tests.support.deadline import wait_until
from tests.support.servers.mock_kafka import Mocked
from walstream.errors import HistoryError, RecordRefused, TopicLost
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.producer_config import producer_properties
from walstream.pipeline.ledger import (
    Counted,
)
from walstream.telemetry.meter import SinkMeter

LIMIT = 1 << 20
LARGE = b"x" * 5000


class Box(OrderedProducer):
    """One that counts what Kafka takes."""

    def __init__(self, linger_ms: int) -> None:
        self.kafka = Mocked()
        self.kafka.write("t", 1)
        self.taken = SinkMeter()
        given = {
            "bootstrap.servers": self.kafka.bootstrap,
            "message.max.bytes": 2000,
            "linger.ms": linger_ms,
        }
        properties = producer_properties(given, LIMIT, LIMIT)
        super().__init__("kafka", properties, self.taken)


@pytest.fixture
def outbox() -> Iterator[Box]:
    made = Box(linger_ms=0)
    yield made
    made.close(0)


def put(outbox: OrderedProducer, value: bytes, counted: Counted) -> None:
    outbox.put("t", value, b"k", 0, 1, counted)


def arrive(outbox: OrderedProducer) -> None:
    """Let all that was produced be reported."""
    wait_until(lambda: heard(outbox).in_flight == 0, 30, "all is reported")


def heard(outbox: OrderedProducer) -> OrderedProducer:
    """Give it when it has heard of what was delivered meanwhile."""
    outbox.wait(0.05)
    return outbox


def test_what_comes_behind_a_refused_record_is_counted_and_not_produced(
    outbox: Box,
) -> None:
    counted = Counted()
    for value in (b"a", LARGE, b"b", b"c"):
        put(outbox, value, counted)
    assert not outbox.has_room
    with pytest.raises(RecordRefused):
        outbox.serve()
    arrive(outbox)
    assert outbox.taken.records == 1
    assert counted.undelivered == 3


def test_what_is_held_behind_a_refused_record_stays(outbox: Box) -> None:
    counted, tried = Counted(), []

    def waits() -> bool:
        tried.append("first")
        return len(tried) > 1

    outbox.hold(waits)
    for value in (LARGE, b"b"):
        put(outbox, value, counted)
    assert not outbox.serve()
    with pytest.raises(RecordRefused):
        outbox.serve()
    assert tried == ["first", "first"]
    arrive(outbox)
    assert outbox.taken.records == 0
    assert counted.undelivered == 2


def test_what_an_attempt_puts_takes_its_place() -> None:
    """And stays there where it finds no room: nothing overtakes it."""
    outbox, counted = Box(linger_ms=0), Counted()
    room, sent = [0], []

    def produce(_topic: str, value: bytes, *_: object, **__: object) -> None:
        if not room[0]:
            raise BufferError
        room[0] -= 1
        sent.append(value)

    vars(outbox)["_produce"] = produce  # a queue as large as told

    def attempt() -> bool:
        for value in (b"1", b"2"):
            put(outbox, value, counted)
        return True

    outbox.hold(lambda: bool(room[0]))  # of another topic
    outbox.hold(attempt)
    put(outbox, b"3", counted)
    assert not outbox.serve()
    for expected in ([b"1"], [b"1", b"2"], [b"1", b"2", b"3"]):
        room[0] = 1
        assert outbox.serve() == (len(expected) == 3)
        assert sent == expected
    assert outbox.has_room
    outbox.close(0)


def test_an_attempt_that_is_refused_is_not_tried_again(outbox: OrderedProducer) -> None:
    tried: list[int] = []

    def refused() -> bool:
        tried.append(1)
        raise HistoryError("too large")

    outbox.hold(refused)
    for _ in range(2):
        with pytest.raises(HistoryError):
            outbox.serve()
    assert tried == [1]


def test_what_fails_takes_what_is_queued_along() -> None:
    outbox, counted = Box(linger_ms=900_000), Counted()
    put(outbox, b"a", counted)
    outbox.put("t", b"b", b"k", 99, 1, counted)  # given up: there is no such partition
    wait_until(lambda: not heard(outbox).has_room, 30, "it is given up")
    arrive(outbox)
    assert outbox.taken.records == 0
    assert counted.undelivered == 2
    with pytest.raises(TopicLost):
        outbox.serve()
    outbox.close(0)
