"""What a record is measured by; the rest is seen with real brokers."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from walstream.errors import RecordRefused, Restart
from walstream.kafka.topic import Topic
from walstream.kafka.topic_reader import TopicRecord
from walstream.sources.kafka.assignment import place_of
from walstream.sources.kafka.lease import PartitionLease
from walstream.sources.kafka.metrics import Lasting
from walstream.sources.kafka.partition_producers import PartitionProducers, _Lane
from walstream.sources.kafka.relay_sink import RelaySink, RelayTarget
from walstream.telemetry.meter import SinkMeter

MIB = 1 << 20
NOW_MS = 1_800_000_000_000


class Outbox:
    """Keeps what is put."""

    def __init__(self) -> None:
        self.put_at: list[int] = []

    def put(self, *record: Any) -> None:
        self.put_at.append(record[4])


@pytest.fixture
def outbox() -> Outbox:
    return Outbox()


@pytest.fixture
def sink(outbox: Outbox) -> RelaySink:
    """Make one that writes in transactions of a partition."""
    nothing = cast("Any", SimpleNamespace(verbose=False))
    fenced = PartitionProducers("k", nothing, "group", "positions")
    lasting = Lasting(PartitionLease(45_000))
    made = RelaySink("k", nothing, nothing, nothing, lasting, fenced=fenced)
    made._topics = cast("Any", SimpleNamespace(tools=_Tools()))  # noqa: SLF001 - no Kafka
    made._clock = cast("Any", SimpleNamespace(now_ms=NOW_MS))  # noqa: SLF001 - likewise
    made._fit.properties({}, 8)  # noqa: SLF001 - likewise
    copied = cast("Any", SimpleNamespace(until=0))
    fenced._lanes[place_of(record(0))] = _Lane(cast("Any", outbox), copied)  # noqa: SLF001 - likewise
    made._outbox = fenced  # noqa: SLF001 - likewise
    return made


class _Tools:
    def set(self, *_: object, **__: object) -> "_Tools":
        return self

    def of_topic(self, _name: str) -> Any:
        return None


def record(size: int) -> TopicRecord:
    return TopicRecord("up", 0, 7, b"k", b"x" * size, (), NOW_MS - 3_600_000)


def put(sink: RelaySink, topic: Topic, size: int) -> None:
    aim = RelayTarget(topic, "public.t", SinkMeter().tables.of("public.t"))
    sink.put(aim, record(size), "", cast("Any", None))


def test_records_are_measured_by_what_their_topic_takes_now(
    sink: RelaySink, outbox: Outbox
) -> None:
    """Not by what it took when its partition's producer met it."""
    topic = Topic("t", "t", 1, MIB, retention_ms=-1)
    put(sink, topic, 10)
    assert outbox.put_at == [NOW_MS - 3_600_000]
    with pytest.raises(RecordRefused):
        put(sink, topic, MIB)
    topic.take_in(Topic("t", "t", 1, 2 * MIB, retention_ms=60_000))
    put(sink, topic, MIB)
    assert outbox.put_at[1] > NOW_MS - 60_000  # else Kafka deletes it


def test_a_topic_that_takes_more_than_the_queue_begins_anew(
    sink: RelaySink, outbox: Outbox
) -> None:
    topic = Topic("t", "t", 1, MIB)
    put(sink, topic, 10)
    topic.take_in(Topic("t", "t", 1, 100 * MIB))
    with pytest.raises(Restart):
        put(sink, topic, 10)
    assert len(outbox.put_at) == 1
