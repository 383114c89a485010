"""A sink ends while its state is asked for; what else it does needs a Kafka."""

import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import cast

import pytest
from confluent_kafka import KafkaError

from tests.support.runtime import altered
from tests.support.servers.mock_kafka import shared_kafka
from walstream.errors import HistoryError, RecordRefused, Restart
from walstream.formats.context import Context
from walstream.kafka.errors import SizeRefused, undelivered
from walstream.kafka.sink import KafkaSink
from walstream.kafka.topic import Topic
from walstream.kafka.topics import Topics
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.ledger import (
    Counted,
    Transaction,
)
from walstream.records.encoding import SinkRules
from walstream.records.producer_record import ProducerRecord
from walstream.records.router import Router, RoutingRules

RULES = SinkRules("main", "event", "murmur2", "send", False, b"1/d/1", Context())


class NoTopics:
    """Stands for the topics of a sink that sends nothing."""

    limits = (1 << 20, 1 << 20)

    def __init__(self) -> None:
        self.known: dict[str, Topic] = {}

    def disown(self) -> None:
        """Forget nothing: there is nothing that it had before."""

    def have(self, names: list[str]) -> bool:
        return self.known.keys() >= set(names)

    def refresh(self) -> "Future[None]":
        return Future()

    def close(self) -> None: ...


def opened() -> KafkaSink:
    router = Router("s", RoutingRules({}, "{table}", ""))
    sink = KafkaSink(RULES, router, cast("Topics", NoTopics()), producer=shared_kafka())
    assert sink.ready()
    return sink


def put_without_table(sink: KafkaSink) -> None:
    """Send a record that no table has, and that is not the first one there."""
    topic = Topic("t", "id", 1, 1 << 20)
    topic.unproven.clear()
    sink._outboxes.of("t").put(topic, b"v", b"k", 0, 0, Counted())  # type: ignore[union-attr]  # noqa: SLF001 - a record without its table


@pytest.fixture
def hurry() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # s: another thread's turn comes at every chance
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hurry")
def test_its_state_can_be_asked_for_while_it_closes() -> None:
    sinks = [opened()]
    said, over = [], threading.Event()

    def ask() -> None:
        while not over.is_set():
            said.append((sinks[-1].waiting, sinks[-1].in_flight))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(5):
            sinks[-1].close()
            seen = len(said)  # one answer may be of before the close
            while len(said) < seen + 2:
                over.wait(0.001)
            assert said[-1] == (True, 0)  # closed: it is not there for Kafka
            sinks.append(opened())
    finally:  # a thread that went on would fill the memory
        over.set()
        asking.join()
    sinks[-1].close()


@pytest.mark.parametrize("under_way", [True, False])
@pytest.mark.parametrize("call", ["ready", "flush"])
@pytest.mark.parametrize("still_s", [31.0, 29.0])
def test_a_process_that_stood_still_gives_up_what_it_had(
    still_s: float, call: str, under_way: bool
) -> None:
    """Somebody else may have the slot by then; a turn that is merely long goes on.

    What its connection holds is as old as what is under way.
    """
    now = [time.time()]
    with altered(time=lambda: now[0]):
        sink = opened()
    if under_way:
        put_without_table(sink)
    assert (sink.in_flight > 0) == under_way
    now[0] += still_s
    if still_s > 30:
        with pytest.raises(Restart, match="was frozen for 31 s"):
            getattr(sink, call)()
        assert sink.in_flight == 0
    else:
        getattr(sink, call)()
    sink.close()


@pytest.mark.parametrize("still_s", [31.0, 29.0])
def test_another_sink_of_a_process_that_stood_still_waits_for_nothing(
    still_s: float,
) -> None:
    """The first one that noticed ended the stream: this one has no turn any more."""
    now, looks = [time.time()], list[float]()
    with altered(time=lambda: now[0]):
        sink = opened()
    put_without_table(sink)
    now[0] += still_s

    def monotonic() -> float:
        looks.append(len(looks))  # a second for each look
        return looks[-1]

    with altered(monotonic=monotonic):
        sink.close()
    assert (len(looks) > 3) == (still_s < 30)


@pytest.mark.parametrize("handled", [False, True])
def test_a_record_of_many_bytes_goes_alone(*, handled: bool) -> None:
    """Until it is delivered there is no room: its copies are not there twice."""
    topics = NoTopics()
    topics.known["t"] = topic = Topic("t", "id", 3, 100 << 20)
    topic.unproven.clear()
    router = Router("s", RoutingRules({}, "{table}", ""))
    room = {"queue.buffering.max.kbytes": 1 << 20}
    producer = {**shared_kafka(), **room}
    sink = KafkaSink(RULES, router, cast("Topics", topics), producer=producer)
    assert sink.ready()
    table = Table("public", "t", ("id", "v"), (0,))

    def taken(size: int) -> bool:
        op = ReplicationOp(Kind.INSERT, table, 7, 1, new=["1", "x" * size])
        if not handled:
            return sink.send(op, Transaction(7))
        sink.put(ProducerRecord(b"k", b"v" * size), op, Transaction(7))
        small = ReplicationOp(Kind.INSERT, table, 7, 2, new=["1", ""])
        return sink.send(small, Transaction(7))

    assert taken(7 << 20)
    assert not taken(9 << 20)
    sink.close()


def test_a_table_does_not_go_where_records_are_that_are_no_ops() -> None:
    topics = NoTopics()
    topics.known["late"] = Topic("late", "id", 3, 1 << 20)
    router = Router("s", RoutingRules({}, "{table}", ""))
    sink = KafkaSink(RULES, router, cast("Topics", topics), producer=shared_kafka())
    assert sink.ready()
    other = Table("public", "outbox", ("id",), (0,))
    op = ReplicationOp(Kind.INSERT, other, 7, 1, new=["1"])
    sink.put(ProducerRecord(b"k", b"v", "late"), op, Transaction(7))
    late = Table("public", "late", ("id",), (0,))
    with pytest.raises(HistoryError, match="its readers would meet ops"):
        sink.send(ReplicationOp(Kind.INSERT, late, 7, 2, new=["1"]), Transaction(7))
    sink.close()


def test_an_op_that_its_topic_does_not_take_stops_or_is_parked() -> None:
    table = Table("public", "t", ("id", "v"), (0,))
    op = ReplicationOp(Kind.INSERT, table, 7, 1, new=["1", "x" * 2000])
    for parking in ("", "parked"):
        topics = NoTopics()
        topics.known["t"] = Topic("t", "id", 3, 1000)
        topics.known["parked"] = Topic("parked", "id", 1, 1 << 20)
        router = Router("s", RoutingRules({}, "{table}", ""))
        rules = replace(RULES, parking=parking)
        sink = KafkaSink(rules, router, cast("Topics", topics), producer=shared_kafka())
        sink.ready()
        transaction = Transaction(7)
        if parking:
            assert sink.send(op, transaction)
            assert sink.tally.parked == {"public.t": 1}
            assert transaction.undelivered == 1
        else:
            with pytest.raises(RecordRefused, match=r"public\.t"):
                sink.send(op, transaction)
        sink.close()


@pytest.mark.parametrize("narrowed", [True, False])
def test_a_size_that_brokers_refuse_begins_the_stream_again_or_ends_it(
    *, narrowed: bool
) -> None:
    """As far as its topic takes less than the batch was made for."""
    sink, asked = opened(), Future[bool]()
    error = undelivered(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), "t", 0)
    sink._outboxes.fail(error)  # type: ignore[union-attr]  # noqa: SLF001 - as a report does
    vars(sink._topics)["narrowed"] = lambda _: asked  # noqa: SLF001 - no brokers
    assert not sink.ready()
    assert not sink.ready()
    asked.set_result(narrowed)
    with pytest.raises(Restart if narrowed else SizeRefused):
        sink.ready()
    sink.close()
