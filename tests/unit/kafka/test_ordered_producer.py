"""Behind a record that failed nothing is produced; tests/integration asks a broker."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError

from tests.support.deadline import wait_until
from tests.support.servers.mock_kafka import Mocked
from walstream.errors import HistoryError, RecordRefused, TopicLost, Transient
from walstream.kafka.errors import SizeRefused
from walstream.kafka.flush_policy import FlushPolicy
from walstream.kafka.native_producer import BINDING
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.producer_config import producer_properties
from walstream.kafka.topic import Topic
from walstream.pipeline.ledger import Counted
from walstream.telemetry.meter import SinkMeter

LIMIT = 1 << 20
LARGE = b"x" * 5000


class Box(OrderedProducer):
    """One that counts what Kafka takes."""

    def __init__(self, linger_ms: int) -> None:
        self.kafka = Mocked()
        self.kafka.write("t", 1)
        self.topic = Topic("t", "id", 3, LIMIT)
        self.topic.unproven.clear()
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


def put(outbox: Box, value: bytes, counted: Counted, partition: int = 0) -> None:
    outbox.put(outbox.topic, value, b"k", partition, 1, counted)


def arrive(outbox: Box) -> None:
    """Let all that was produced be reported."""
    wait_until(lambda: heard(outbox).in_flight == 0, 30, "all is reported")


def heard(outbox: Box) -> Box:
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


@pytest.mark.parametrize("binding", ["", "1"])
def test_each_record_is_counted_as_reported_once(
    monkeypatch: pytest.MonkeyPatch, binding: str
) -> None:
    """Also the first of a partition; else flushes wait for answers that have come."""
    monkeypatch.setenv(BINDING, binding)
    outbox, counted = Box(linger_ms=0), Counted()
    outbox.topic.unproven.update(range(3))
    for number in range(9):
        put(outbox, b"a", counted, number % 3)
    wait_until(lambda: outbox.serve() and not heard(outbox).in_flight, 30, "all arrive")
    assert counted.undelivered == 0
    flushes = outbox._flushes  # noqa: SLF001 - nothing else tells
    assert flushes.sent == flushes.reported == 9
    outbox.close(0)


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
    put(outbox, b"b", counted, 99)  # given up: there is no such partition
    wait_until(lambda: not heard(outbox).has_room, 30, "it is given up")
    arrive(outbox)
    assert outbox.taken.records == 0
    assert counted.undelivered == 2
    with pytest.raises(TopicLost):
        outbox.serve()
    outbox.close(0)


class Row(Box):
    """One whose records are produced when a test says, and reported likewise."""

    def __init__(self) -> None:
        super().__init__(linger_ms=0)
        self.topic.doubt()
        self.sent: list[bytes] = []
        self._reports: list[Callable[..., None]] = []
        vars(self)["_produce"] = self._note

    def _note(self, *record: Any, **_: object) -> None:
        self.sent.append(record[1])
        self._reports.append(record[4])

    def report(self, number: int, offset: int | None) -> None:
        """Report the delivery of what was sent as this number."""
        self._reports[number](None, Said(offset))


class Said:
    """The message of a report."""

    def __init__(self, offset: int | None) -> None:
        self._offset = offset

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int | None:
        return self._offset


@pytest.fixture
def row(monkeypatch: pytest.MonkeyPatch) -> Iterator[Row]:
    monkeypatch.setenv(BINDING, "1")  # whose callbacks are called here
    made = Row()
    yield made
    made.close(0)


def test_the_first_record_in_a_partition_is_acknowledged_before_the_next_is_sent(
    row: Row,
) -> None:
    counted = Counted()
    put(row, b"1", counted)
    put(row, b"2", counted, partition=1)
    assert row.sent == [b"1", b"2"], "another partition's goes meanwhile"
    put(row, b"3", counted)
    put(row, b"4", counted, partition=2)
    assert not row.has_room
    assert not row.serve()
    assert row.sent == [b"1", b"2"], "none overtakes the one that waits"
    row.report(1, 7)
    assert not row.serve()
    row.report(0, 7)
    assert row.serve()
    assert row.sent == [b"1", b"2", b"3", b"4"]
    put(row, b"5", counted)
    put(row, b"6", counted)
    assert row.sent[4:] == [b"5", b"6"], "the partition is proven"
    assert counted.undelivered == 4


def test_a_large_record_is_first_in_its_partition_likewise(row: Row) -> None:
    counted = Counted()
    put(row, b"1", counted)
    row.put_alone(row.topic, b"2", b"k", 0, 1, counted)
    assert not row.serve()
    assert row.sent == [b"1"]
    row.report(0, 7)
    row.serve()
    assert row.sent == [b"1", b"2"]
    row.report(1, 8)
    assert row.serve()
    assert counted.undelivered == 0


def test_partitions_that_are_doubted_are_proven_again(row: Row) -> None:
    counted = Counted()
    row.topic.unproven.clear()
    put(row, b"1", counted)
    row.topic.doubt()
    put(row, b"2", counted)
    put(row, b"3", counted)
    assert row.sent == [b"1", b"2"]
    row.report(0, 7)
    assert not row.serve(), "that was sent before"
    row.report(1, 8)
    assert row.serve()
    assert row.sent == [b"1", b"2", b"3"]


def test_a_record_of_which_no_offset_is_told_counts_as_not_delivered(row: Row) -> None:
    counted = Counted()
    put(row, b"1", counted)
    row.report(0, None)
    put(row, b"2", counted)
    assert row.sent == [b"1"]
    assert row.has_doubts
    with pytest.raises(Transient, match="did not say where it is"):
        row.serve()
    assert counted.undelivered == 2
    assert row.topic.unproven == {0, 1, 2}


def test_a_size_that_is_refused_upon_delivery_tells_its_topic(row: Row) -> None:
    counted = Counted()
    put(row, b"1", counted)
    error = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
    row.hear(counted, error, Said(None))  # type: ignore[arg-type]
    with pytest.raises(SizeRefused) as refused:
        row.serve()
    assert refused.value.topic == "t"
    assert counted.undelivered == 1


def test_what_waits_for_others_is_sent_when_told_that_none_came() -> None:
    outbox, counted = Box(linger_ms=60_000), Counted()
    outbox._flushes = FlushPolicy(hurries=True)  # noqa: SLF001 - as a stream's is made
    try:
        put(outbox, b"a", counted)
        assert outbox.serve(), "fresh: others may come"
        put(outbox, b"b", counted)
        assert outbox.in_flight == 2

        def is_there() -> bool:
            outbox.flush()  # without effect while the broker is not known yet
            return not counted.undelivered

        wait_until(is_there, 30, "both are delivered, long before linger.ms")
    finally:
        outbox.close(0)
