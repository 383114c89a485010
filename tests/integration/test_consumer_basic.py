"""The basic consumer with a real broker: each op at least once, in order."""

import asyncio
import logging
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from consumer import (
    BasicConsumer,
    ConsumerRecord,
    Fatal,
    HandlerFailed,
    Kind,
    Measure,
    Op,
    PoisonRecord,
    Retry,
)
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.loads.op_record import Feed, truncate
from tests.support.oracles.topic_reader import TopicAdmin
from tests.support.programs.consumer_thread import Running

pytestmark = pytest.mark.same_on_15

LATEST = {"auto.offset.reset": "latest"}
Handled = dict[int, list[str]]  # partition: ids, in order


class Basics:
    """A topic, and basic consumers of one group."""

    def __init__(self, kafka: KafkaServer, topic: str) -> None:
        self.kafka = kafka
        self.topic = topic
        self.handled: Handled = defaultdict(list)

    def make(self, partitions: int = 1) -> Feed:
        TopicAdmin(self.kafka.bootstrap).create(self.topic, partitions)
        return Feed(self.kafka.bootstrap, self.topic)

    def note(self, op: Op) -> None:
        self.handled[op.record.partition].append(op.new["id"] or "")

    def consumer(self, handler: Any = None, **options: Any) -> BasicConsumer:
        kafka = {"bootstrap.servers": self.kafka.bootstrap, "fetch.wait.max.ms": 10}
        return BasicConsumer(
            handler or self.note,
            group=self.topic,
            topics=[self.topic],
            kafka=kafka | options.pop("kafka", {}),
            **options,
        )

    @property
    def count(self) -> int:
        return sum(map(len, self.handled.values()))

    def until(self, wanted: int) -> None:
        wait_until(lambda: self.count >= wanted, 60, f"{wanted} ops are handled")

    def stored(self, partition: int = 0) -> int:
        settings = {"bootstrap.servers": self.kafka.bootstrap, "group.id": self.topic}
        with Consumer(settings) as asking:
            where = TopicPartition(self.topic, partition)
            try:
                offset: int = asking.committed([where], timeout=30)[0].offset
            except KafkaException as error:  # of a broker that is just started
                if error.args[0].code() != KafkaError.NOT_COORDINATOR:
                    raise
                return OFFSET_INVALID
            return offset

    def lose_four(self, feed: Feed, partition: int) -> None:
        """Have five records, of which four are deleted."""
        for number in range(5):
            feed.insert(number, partition)
        feed.flush()
        TopicAdmin(self.kafka.bootstrap).delete_before(self.topic, 4, partition)

    def goes_on(self, caplog: pytest.LogCaptureFixture, kafka: dict[str, str]) -> None:
        """Read the fifth, and miss the four."""
        lost: list[float] = []

        def measure(what: Measure, value: float, _: str, __: int) -> None:
            if what is Measure.LOST:
                lost.append(value)

        with (
            caplog.at_level(logging.WARNING),
            self.consumer(kafka=kafka, metrics=measure) as consumer,
        ):
            running = Running(consumer)
            wait_until(lambda: lost and self.count, 60, "it reads on")
        running.join()
        assert (self.handled, lost) == ({1: ["4"]}, [4])
        assert "deleted offsets 0 to 3" in caplog.text


@pytest.fixture
def basics(kafka: KafkaServer, topic_prefix: str) -> Basics:
    return Basics(kafka, f"{topic_prefix}item")


def test_ops_are_handled_in_order_and_their_offsets_stored(basics: Basics) -> None:
    feed = basics.make(partitions=2)
    for number in range(200):
        feed.insert(number, number % 2)
    feed.send_raw(None)
    feed.flush()
    with basics.consumer() as consumer:
        running = Running(consumer)
        basics.until(200)
        wait_until(lambda: set(consumer.lag().values()) == {0}, 10, "nothing lags")
    running.join()
    assert basics.handled == {
        first: [str(number) for number in range(first, 200, 2)] for first in (0, 1)
    }
    assert basics.stored(0) == 101
    with basics.consumer() as consumer:
        running = Running(consumer)
        wait_until(lambda: len(consumer.lag()) == 2, 10, "both are known")
        assert set(consumer.lag().values()) == {0}  # of an idle topic
        feed.insert(200)
        feed.flush()
        basics.until(201)
    running.join()
    assert basics.count == 201


def test_the_op_in_hand_is_finished_at_a_stop_and_no_other(basics: Basics) -> None:
    feed = basics.make()
    for number in range(3):
        feed.insert(number)
    feed.flush()
    begun, go = threading.Event(), threading.Event()

    def handle(op: Op) -> None:
        begun.set()
        assert go.wait(60)
        basics.note(op)

    consumer = basics.consumer(handle)
    running = Running(consumer)
    assert begun.wait(60)
    consumer.stop()
    go.set()
    running.join()
    assert basics.handled == {0: ["0"]}
    assert basics.stored() == 1


def test_a_stop_ends_the_wait_for_a_revoked_handler(basics: Basics) -> None:
    feed = basics.make(partitions=2)
    begun, go = [threading.Event(), threading.Event()], threading.Event()
    for partition in (0, 1):
        feed.insert(partition, partition)
    feed.flush()

    def handle(op: Op) -> None:
        begun[op.record.partition].set()
        assert go.wait(60)

    consumer = basics.consumer(handle, stop_timeout=1)
    running = Running(consumer)
    assert all(one.wait(60) for one in begun)
    wait_until(lambda: len(consumer.lag()) == 2, 10, "both are known")
    with basics.consumer(lambda _: None) as other:
        taking = Running(other)
        # of max.poll.interval.ms, half
        wait_until(lambda: len(consumer.lag()) == 1, 20, "one is being revoked")
        consumer.stop()
        running.join()
        go.set()
    taking.join()


def test_a_run_ends_after_the_handlers_of_revoked_partitions(
    basics: Basics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumer.group.fetcher._REVOKE_SHARE", 0)
    feed = basics.make(partitions=2)
    begun, go = [threading.Event() for _ in (0, 1)], [threading.Event() for _ in (0, 1)]
    for partition in (0, 1):
        feed.insert(partition, partition)
    feed.flush()

    def handle(op: Op) -> None:
        begun[op.record.partition].set()
        assert go[op.record.partition].wait(60)
        basics.note(op)

    consumer = basics.consumer(handle)
    running = Running(consumer)
    assert all(one.wait(60) for one in begun)
    with basics.consumer(lambda _: None) as other:
        taking = Running(other)
        wait_until(lambda: len(other.lag()) == 1, 20, "the other one has a partition")
        ((_, kept),) = consumer.lag()
        consumer.stop()
        go[kept].set()
        threading.Timer(0.5, go[1 - kept].set).start()
        running.join()
        assert basics.count == 2
    taking.join()


def test_a_handler_may_block_longer_than_the_poll_interval(basics: Basics) -> None:
    feed = basics.make()
    for number in range(3):
        feed.insert(number)
    feed.flush()

    def handle(op: Op) -> None:
        basics.note(op)
        if op.new["id"] == "0":
            threading.Event().wait(6.6)

    limits = {"max.poll.interval.ms": 6000, "session.timeout.ms": 6000}
    with basics.consumer(handle, kafka=limits) as consumer:
        running = Running(consumer)
        basics.until(3)
    running.join()
    assert basics.handled == {0: ["0", "1", "2"]}


def test_retry_comes_again_before_what_follows(basics: Basics) -> None:
    feed = basics.make(partitions=2)
    for number in range(10):
        feed.insert(number, number % 2)
    feed.flush()
    tries: list[int] = []

    def handle(op: Op) -> None:
        if op.new["id"] == "4" and len(tries) < 3:
            tries.append(len(basics.handled[1]))
            if len(tries) == 3:
                wait_until(lambda: len(basics.handled[1]) == 5, 10, "others advance")
            raise Retry
        basics.note(op)

    with basics.consumer(handle) as consumer:
        running = Running(consumer)
        basics.until(10)
    running.join()
    assert basics.handled[0] == ["0", "2", "4", "6", "8"]
    assert len(tries) == 3


@pytest.mark.parametrize("cause", [Fatal(KeyError("secret")), SystemExit("secret")])
def test_fatal_stops_with_the_position_and_stores_what_came_before(
    basics: Basics, cause: BaseException
) -> None:
    feed = basics.make()
    for number in range(5):
        feed.insert(number)
    feed.flush()

    def handle(op: Op) -> None:
        if op.new["id"] == "3":
            raise cause
        basics.note(op)

    error = Running(basics.consumer(handle)).fails(HandlerFailed)
    assert (error.offset, error.table, error.lsn) == (3, "public.item", 1024)
    assert type(getattr(cause, "cause", cause)).__name__ in str(error)
    assert "secret" not in str(error)
    assert basics.stored() == 3


def test_poison_stops_or_is_shown(basics: Basics) -> None:
    feed = basics.make()
    feed.insert(0)
    feed.send_raw(b"{}")
    feed.insert(1)
    feed.flush()
    assert Running(basics.consumer()).fails(PoisonRecord).offset == 1
    seen: list[object] = []
    with basics.consumer(on_poison=seen.append) as consumer:
        running = Running(consumer)
        basics.until(2)
    running.join()
    assert len(seen) == 1


def test_a_coroutine_function_sees_poison_before_its_offset_is_stored(
    basics: Basics,
) -> None:
    feed = basics.make()
    feed.send_raw(b"{}")
    feed.insert(1)
    feed.flush()
    parked: list[int] = []

    async def park(record: ConsumerRecord) -> None:
        await asyncio.sleep(0)
        parked.append(record.offset)

    async def full(_: ConsumerRecord) -> None:
        raise OSError("the other topic is away")

    Running(basics.consumer(on_poison=full)).fails(HandlerFailed)
    assert basics.stored() == 0
    with basics.consumer(on_poison=park) as consumer:
        running = Running(consumer)
        basics.until(1)
    running.join()
    assert parked == [0]


def test_records_deleted_before_they_were_read_are_told_and_counted(
    basics: Basics, caplog: pytest.LogCaptureFixture
) -> None:
    feed = basics.make()
    feed.insert(0)
    feed.flush()
    with basics.consumer() as consumer:
        running = Running(consumer)
        basics.until(1)
    running.join()
    for number in range(1, 6):
        feed.insert(number)
    feed.flush()
    TopicAdmin(basics.kafka.bootstrap).delete_before(basics.topic, 4)
    measures: dict[Measure, float] = defaultdict(float)

    def measure(what: Measure, value: float, _: str, __: int) -> None:
        measures[what] += value

    with (
        caplog.at_level(logging.WARNING),
        basics.consumer(metrics=measure) as consumer,
    ):
        running = Running(consumer)
        basics.until(3)
    running.join()
    assert basics.handled == {0: ["0", "4", "5"]}
    assert measures[Measure.LOST] == 3
    assert "deleted offsets 1 to 3" in caplog.text


@pytest.mark.parametrize("begin", ["earliest", "latest"])
def test_records_deleted_between_two_runs_are_told_where_none_was_ever_read(
    basics: Basics, caplog: pytest.LogCaptureFixture, begin: str
) -> None:
    feed = basics.make(partitions=2)
    kafka = {"auto.offset.reset": begin}
    with basics.consumer(kafka=kafka) as consumer:
        running = Running(consumer)
        wait_until(lambda: basics.stored(1) == 0, 30, "it began")
        assert basics.stored(0) == 0  # at once
    running.join()
    basics.lose_four(feed, 1)
    basics.goes_on(caplog, kafka)


@pytest.mark.parametrize("begin", ["earliest", "latest"])
def test_a_partition_that_was_added_is_read_from_its_first_record(
    basics: Basics, caplog: pytest.LogCaptureFixture, begin: str
) -> None:
    basics.make()
    kafka = {"auto.offset.reset": begin}
    with basics.consumer(kafka=kafka) as consumer:
        running = Running(consumer)
        wait_until(lambda: basics.stored(0) == 0, 30, "it began")
    running.join()
    TopicAdmin(basics.kafka.bootstrap).grow(basics.topic, 2)
    basics.lose_four(Feed(basics.kafka.bootstrap, basics.topic), 1)
    basics.goes_on(caplog, kafka)


def test_members_that_join_at_once_begin_a_topic_together(basics: Basics) -> None:
    feed = basics.make(partitions=4)
    for number in range(8):
        feed.insert(number, number % 4)
    feed.flush()
    with basics.consumer() as one, basics.consumer() as other:
        runs = [Running(one), Running(other)]
        wait_until(lambda: len(one.lag()) == len(other.lag()) == 2, 60, "they share")
        basics.until(8)
    for running in runs:
        running.join()
    assert [basics.stored(partition) for partition in range(4)] == [2] * 4


def test_from_the_latest_on_no_record_behind_a_deleted_one_is_passed_over(
    basics: Basics, caplog: pytest.LogCaptureFixture
) -> None:
    feed = basics.make()
    with basics.consumer(kafka=LATEST) as consumer:
        running = Running(consumer)
        wait_until(lambda: basics.stored() == 0, 30, "it began")
        feed.insert(0)
        feed.flush()
        basics.until(1)
    running.join()
    for number in range(1, 6):
        feed.insert(number)
    feed.flush()
    TopicAdmin(basics.kafka.bootstrap).delete_before(basics.topic, 4)
    with caplog.at_level(logging.WARNING), basics.consumer(kafka=LATEST) as consumer:
        running = Running(consumer)
        basics.until(3)
    running.join()
    assert basics.handled == {0: ["0", "4", "5"]}
    assert "deleted offsets 1 to 3" in caplog.text


def test_a_group_that_never_read_lost_nothing(
    basics: Basics, caplog: pytest.LogCaptureFixture
) -> None:
    feed = basics.make()
    for number in range(3):
        feed.insert(number)
    feed.flush()
    TopicAdmin(basics.kafka.bootstrap).delete_before(basics.topic, 2)
    with basics.consumer() as consumer:
        running = Running(consumer)
        basics.until(1)
    running.join()
    assert "deleted" not in caplog.text


def test_a_slow_handler_is_counted_while_it_works(basics: Basics) -> None:
    feed = basics.make()
    for number in range(20):
        feed.insert(number)
    feed.flush()
    counted, go = [0.0], threading.Event()

    def handle(op: Op) -> None:
        if op.new["id"] == "10":
            threading.Event().wait(1.1)
        elif op.new["id"] == "19":
            assert go.wait(60)

    def measure(what: Measure, value: float, _: str, __: int) -> None:
        counted[0] += value * (what is Measure.HANDLED)

    with basics.consumer(handle, metrics=measure) as consumer:
        running = Running(consumer)
        wait_until(lambda: counted[0] >= 11, 10, "11 are counted")
        go.set()
    running.join()


def test_truncate_comes_once_for_each_partition(basics: Basics) -> None:
    feed = basics.make(partitions=3)
    for partition in range(3):
        feed.send(truncate(1000, 3), partition)
    feed.flush()
    seen: list[int] = []

    def handle(op: Op) -> None:
        assert op.kind is Kind.TRUNCATE
        seen.append(op.record.partition)

    with basics.consumer(handle) as consumer:
        running = Running(consumer)
        wait_until(lambda: len(seen) == 3, 20, "all three come")
    running.join()
    assert sorted(seen) == [0, 1, 2]


def test_a_slow_partition_is_paused_and_loses_nothing(basics: Basics) -> None:
    feed = basics.make(partitions=2)
    for number in range(30_000):
        feed.insert(number, 0)
    feed.insert(1, 1)
    feed.flush()
    other = threading.Event()

    def handle(op: Op) -> None:
        if op.record.partition == 1:
            other.set()
        elif op.new["id"] == "0":
            assert other.wait(60)
        basics.note(op)

    with basics.consumer(handle) as consumer:
        running = Running(consumer)
        basics.until(30_001)
    running.join()
    assert basics.handled[0] == [str(number) for number in range(30_000)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_main_thread_gracefully(
    basics: Basics, number: signal.Signals
) -> None:
    feed = basics.make()
    feed.insert(0)
    feed.flush()
    code = f"""
import signal
from consumer import BasicConsumer
before = signal.getsignal(signal.SIGTERM)
BasicConsumer(
    lambda op: print("handled", flush=True), group={basics.topic!r},
    topics={basics.topic!r}, kafka={{"bootstrap.servers": {basics.kafka.bootstrap!r}}},
).run()
assert signal.getsignal(signal.SIGTERM) is before
print("stopped")
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "handled\n"
        process.send_signal(number)
        assert process.stdout.read() == "stopped\n"
        assert process.wait(20) == 0
    assert basics.stored() == 1


def test_what_comes_between_two_runs_is_read_also_from_the_latest_on(
    basics: Basics,
) -> None:
    feed = basics.make(partitions=2)
    feed.insert(0, 1)
    feed.flush()
    with basics.consumer(kafka=LATEST) as consumer:
        running = Running(consumer)
        wait_until(lambda: basics.stored(0) == 0, 30, "the begin of one is stored")
        wait_until(lambda: basics.stored(1) == 1, 30, "the begin of the other, too")
        feed.insert(1, 1)
        feed.flush()
        wait_until(lambda: "1" in basics.handled[1], 30, "it is handled")
    running.join()
    feed.insert(2, 0)
    feed.insert(3, 1)
    feed.flush()
    with basics.consumer(kafka=LATEST) as consumer:
        running = Running(consumer)
        wait_until(
            lambda: {"2", "3"} <= {*basics.handled[0], *basics.handled[1]}, 30, "all"
        )
    running.join()
    assert basics.handled[0] == ["2"]
    # the client may have fetched what came before that, ahead of being told
    assert basics.handled[1][-2:] == ["1", "3"]


def test_the_first_op_of_all_is_not_skipped_where_it_stopped_the_consumer(
    basics: Basics,
) -> None:
    feed = basics.make()

    def refuse(_: Op) -> None:
        raise Fatal

    with basics.consumer(refuse, kafka=LATEST) as consumer:
        running = Running(consumer)
        wait_until(consumer.lag, 30, "it reads")
        feed.insert(0)
        feed.flush()
        running.fails(HandlerFailed)
    with basics.consumer(kafka=LATEST) as consumer:
        running = Running(consumer)
        basics.until(1)
    running.join()
    assert basics.handled == {0: ["0"]}
