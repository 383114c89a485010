"""A relay sink's transactional producers: one of each upstream partition that is ours.

Whoever gets a partition takes over its transactional.id. So a member that was frozen
meanwhile can write nothing of it behind its successor.
"""

from collections.abc import Collection, Iterable
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from walstream.config import KafkaSinkConfig
from walstream.config.librdkafka import ClientProperties
from walstream.errors import Restart, WalstreamError
from walstream.kafka.offsets import Partition
from walstream.kafka.producer_config import (
    client_properties,
    hurries,
    transaction_timeout_ms,
)
from walstream.kafka.topic import Topic
from walstream.kafka.topic_reader import TopicRecord
from walstream.kafka.transaction_plan import TransactionPlan
from walstream.kafka.transactional_producer import TransactionalProducer
from walstream.pipeline.outage import Outage
from walstream.sources.kafka.assignment import place_of
from walstream.sources.kafka.partition_position import CopiedRecords
from walstream.telemetry import runtime
from walstream.telemetry.meter import SinkMeter

_DOUBT_S: Final = 6 * 3600.0  # as TopicWatch does it
PARTS: Final = 8  # of the queue: few partitions have a backlog at one time


@dataclass(frozen=True, slots=True)
class UpstreamPartition:
    """One upstream partition, as the group assigned it."""

    place: Partition
    topic_id: str
    begin: int  # the group's offset
    replay: str  # noted beside it: positions of another one do not count


class FindsPositions(Protocol):
    """Topics of a sink, among them that of positions."""

    def find_positions(self, name: str, /) -> Topic | None:
        """Return it; None: it is not known yet, ask again."""


@dataclass(slots=True)
class _Lane:
    producer: TransactionalProducer
    copied: CopiedRecords
    # what it wrote to, as it found it: each producer proves partitions for itself
    topics: dict[str, Topic] = field(default_factory=dict)


class PartitionProducers:
    """All of one sink; a producer lives as long as its partition is ours."""

    def __init__(
        self, sink: str, config: KafkaSinkConfig, group: str, topic: str
    ) -> None:
        """Make none yet; `topic` is that of positions."""
        self.topic = topic
        self._sink = sink
        self._config = config
        self._group = group
        self._taken: dict[Partition, UpstreamPartition] = {}
        self._lanes: dict[Partition, _Lane] = {}
        self._positions: Topic | None = None
        self._properties: ClientProperties = {}
        self._meter = SinkMeter()
        self._failure: WalstreamError | None = None
        self._next_doubt = runtime.monotonic() + _DOUBT_S

    def begin(
        self, topics: FindsPositions, properties: ClientProperties, meter: SinkMeter
    ) -> bool:
        """Make producers, each of `properties`; False: positions have no topic yet."""
        self._positions = topics.find_positions(self.topic)
        if self._positions is None:
            return False
        self._properties = properties
        self._meter = meter
        for each in self._taken.values():
            self._lanes[each.place] = self._made(each, self._positions)
        return True

    def _made(self, assigned: UpstreamPartition, positions: Topic) -> _Lane:
        place, config = assigned.place, self._config
        # by the topic's id, too: a group of another cluster may have all these names
        origin = f"{place.topic}-{place.number}-{assigned.topic_id}"
        plan = TransactionPlan(
            f"{self._group}-{origin}-{self._sink}",
            (),
            self.topic,
            config.commit_interval,
            transaction_timeout_ms(config.producer),
        )
        copied = CopiedRecords(plan, assigned.topic_id, assigned.begin, assigned.replay)
        producer = TransactionalProducer(
            self._sink,
            {**self._properties, **plan.properties},
            self._meter,
            hurries=hurries(config.producer),
            given=config.producer,
            client=client_properties(config.producer),
            book=copied,
            positions=partial(_same, copy(positions)),
        )
        return _Lane(producer, copied)

    def take(self, assigned: UpstreamPartition) -> None:
        """Begin with a partition: `serve` is False until its producer is open."""
        self._taken[assigned.place] = assigned
        if self._positions is not None:
            self._lanes[assigned.place] = self._made(assigned, self._positions)

    def leave(self, places: Collection[Partition]) -> None:
        """End the producers of partitions that others get."""
        for place in places:
            self._taken.pop(place, None)
        lanes = [self._lanes.pop(place) for place in places if place in self._lanes]
        # all at once: one that asks a coordinator which is away ends within a second,
        # and the group waits for its answer no longer than max.poll.interval.ms
        for lane in lanes:
            lane.producer.cease()
        for lane in lanes:
            lane.producer.close(0.0)

    def lane(
        self, record: TopicRecord, topic: Topic
    ) -> tuple[Topic, TransactionalProducer]:
        """Return the producer of a record, and the topic as that knows it."""
        lane = self._lanes.get(place_of(record))
        if lane is None:
            raise Restart(f"partition {record.topic}[{record.partition}] is not taken")
        found = lane.topics.get(topic.name)
        if found is None or found.identity != topic.identity:
            found = lane.topics[topic.name] = copy(topic)
        return found, lane.producer

    def has(self, record: TopicRecord) -> bool:
        """Return whether a committed transaction has what becomes of a record."""
        lane = self._lanes.get(place_of(record))
        found = lane is not None and record.offset < lane.copied.until
        self._meter.left_out += found
        return found

    def serve(self) -> bool:
        """Serve delivery reports, end transactions that are due; tell of room.

        Raises what stops one of these producers for good.
        """
        if self._failure is not None:
            raise self._failure
        if runtime.monotonic() >= self._next_doubt:
            self._next_doubt = runtime.monotonic() + _DOUBT_S
            for lane in self._lanes.values():
                for topic in lane.topics.values():
                    topic.doubt()
        every = self._each()
        busy = any([one.is_busy for one in every])  # noqa: C419 - each is asked
        return all([one.serve(busy=busy) for one in every])  # noqa: C419 - likewise

    @property
    def has_room(self) -> bool:
        """Return whether the last record was taken, and none has failed."""
        return self._failure is None and all(one.has_room for one in self._each())

    @property
    def in_flight(self) -> int:
        return sum(one.in_flight for one in self._each())

    @property
    def unreachable(self) -> bool:
        """Return whether Kafka was in trouble at its last sign to one of them."""
        return any(one.unreachable for one in self._each())

    @property
    def outage(self) -> Outage | None:
        """Reason why Kafka does not answer, as far as one of them knows."""
        return next(filter(None, (one.outage for one in self._each())), None)

    def acquaint(self, _topic: str) -> None:
        """Do nothing: a producer is ready once its transactions are."""

    def answers(self) -> None:
        """Note that Kafka's trouble is over."""
        for one in self._each():
            if one.unreachable:
                one.answers()

    def fail(self, error: WalstreamError) -> None:
        """Remember what stops these producers."""
        if self._failure is None or (self._failure.retryable and not error.retryable):
            self._failure = error

    def close(self, _wait_s: float) -> None:
        """Drop what is not committed."""
        self.leave(list(self._lanes))

    def _each(self) -> Iterable[TransactionalProducer]:
        return [lane.producer for lane in list(self._lanes.values())]


def _same(topic: Topic) -> Topic:
    return topic
