"""Kafka's clients, as a member of a relay's group has them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from consumer.group.assigned_partition import Place
from tests.simulation.group import Coordinator, SimConsumer
from tests.simulation.kafka import Pending, SimCluster, SimProducer
from tests.simulation.kafka_transactional import SimTransactionalProducer
from tests.simulation.world import Process, World
from walstream.kafka import group, group_consumer
from walstream.sources.kafka import runner as _runner  # noqa: F401 - loaded: patched

_TIMED_OUT: Final = KafkaError._MSG_TIMED_OUT
_LOST: Final = 0.05  # share of commits whose answer is lost


class _Failed:
    """An error in a record's place."""

    def __init__(self, place: Place, offset: int) -> None:
        self._place, self._offset = place, offset

    def error(self) -> KafkaError:
        return KafkaError(KafkaError._AUTO_OFFSET_RESET, "no offset to begin at")

    def topic(self) -> str:
        return self._place.topic

    def partition(self) -> int:
        return self._place.partition

    def offset(self) -> int:
        return self._offset


class RelayConsumer(SimConsumer):
    """A member's client, with `auto.offset.reset` = "error"."""

    def __init__(
        self,
        coordinator: Coordinator,
        owner: Process,
        heard: Callable[..., None] = lambda *_: None,
    ) -> None:
        super().__init__(coordinator, owner)
        self._heard = heard  # on_commit
        self.resets = False  # does it go on with the oldest record by itself?
        self._heard_at = 0.0  # by the broker: it takes requests in their order
        self._answers: list[tuple[KafkaError | None, list[TopicPartition]]] = []
        self._given: set[Place] = set()  # of which something was handed out
        self._asked: set[str] = set()  # topics of which it was asked where to begin

    # assignments: its callbacks take them, and let them go

    def _begin(self, places: set[Place]) -> None:
        """Leave it to the callback."""

    def incremental_assign(self, where: list[TopicPartition]) -> None:
        for one in where:
            place, at = Place(one.topic, one.partition), one.offset
            if at == OFFSET_BEGINNING:  # the broker is asked at once
                at = self._log.low.get(place, 0)
                self._group.began(self, place, at)
            self._at[place] = at
            self._given.discard(place)
        self._asked = set()

    def incremental_unassign(self, where: list[TopicPartition]) -> None:
        for one in where:
            self._at.pop(Place(one.topic, one.partition), None)

    def _attend(self) -> None:
        super()._attend()
        answers, self._answers = self._answers, []
        for error, offsets in answers:
            self._heard(error, offsets)

    def _readable(self) -> list[Place]:
        if self._group.away or self.closed:
            return []
        visible, low = self._log.visible, self._log.low
        return sorted(
            place
            for place in self.owned - self._paused
            if (at := self._at.get(place)) is not None
            and (at != visible[place] or at < low.get(place, 0))
        )

    def _taken(self, most: int) -> list[Any]:
        for place in self._readable():
            at = self._at[place]
            if at > self._log.visible[place] or at < self._log.low.get(place, 0):
                del self._at[place]  # it is not fetched any more
                if not self.resets:
                    return [_Failed(place, at)]
                self._at[place] = self._log.low.get(place, 0)
        taken = super()._taken(most)
        self._given |= {Place(one.topic(), one.partition()) for one in taken}
        return taken

    def position(self, where: list[TopicPartition]) -> list[TopicPartition]:
        """Tell what is behind that which was handed out; at first nothing was."""
        found = []
        for one in where:
            place, at = Place(one.topic, one.partition), OFFSET_INVALID
            if place in self._given:
                at = self._at.get(place, OFFSET_INVALID)
            found.append(TopicPartition(*place, at))
        return found

    # offsets, with what is kept beside them

    def commit(
        self, *, offsets: list[TopicPartition], asynchronous: bool
    ) -> list[TopicPartition] | None:
        self._world.port("commit offsets")
        if asynchronous:
            self._in_turn(lambda: self._answer(offsets))
            return None
        sent: list[bool] = []
        self._in_turn(lambda: sent.append(True))
        self._world.wait(lambda: bool(sent))
        self._world.wait(lambda: not self._group.away, 5.0)
        error = self._store(offsets)
        self._world.port("offsets committed")
        if error is not None:
            raise KafkaException(error)
        return offsets

    def _in_turn(self, act: Callable[[], None]) -> None:
        """Let the broker hear of it, behind what it was told before."""
        now, draw = self._world.now, self._world.random
        self._heard_at = max(self._heard_at, now + draw.choice((0.0, 0.001, 0.3)))
        self._world.at(self._heard_at - now, act, self.owner)

    def _answer(self, offsets: list[TopicPartition]) -> None:
        self._answers.append((self._store(offsets), offsets))

    def _store(self, offsets: list[TopicPartition]) -> KafkaError | None:
        """Have the broker store them; return its error."""
        group = self._group
        if group.away:
            return KafkaError(KafkaError.REQUEST_TIMED_OUT, "no answer")
        if self not in group.members:
            return KafkaError(KafkaError.UNKNOWN_MEMBER_ID, "it is no member")
        if any(Place(one.topic, one.partition) not in self.owned for one in offsets):
            # on its connection it is in front of what let the partition go
            return KafkaError(KafkaError.ILLEGAL_GENERATION, "of a generation before")
        for one in offsets:
            if one.topic in self._asked:
                place = Place(one.topic, one.partition)
                group.began(self, place, one.offset)
        for one in offsets:
            place = Place(one.topic, one.partition)
            group.storing(place, one.offset)
            group.offsets[place] = one.offset
            group.notes[place] = one.metadata or ""
        if self._world.random.random() < _LOST:
            return KafkaError(KafkaError.REQUEST_TIMED_OUT, "the answer is lost")
        return None

    def offsets_for_times(
        self, partitions: list[TopicPartition], timeout: float
    ) -> list[TopicPartition]:
        """Tell where the records that there are begin."""
        self._world.port("offsets for times")
        if self._group.away:
            self._world.wait(lambda: False, timeout)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "timed out"))
        found = []
        for one in partitions:
            assert one.offset == OFFSET_BEGINNING
            self._asked.add(one.topic)
            low = self._log.low.get(Place(one.topic, one.partition), 0)
            found.append(TopicPartition(one.topic, one.partition, low))
        return found

    def committed(
        self, partitions: list[TopicPartition], timeout: float
    ) -> list[TopicPartition]:
        notes = self._group.notes
        return [
            TopicPartition(
                one.topic,
                one.partition,
                one.offset,
                notes.get(Place(one.topic, one.partition), ""),
            )
            for one in super().committed(partitions, timeout)
        ]


class _Asking:
    """A client that joins no group."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._group = coordinator

    def list_topics(self, topic: str, *, timeout: float) -> object:
        world = self._group.log.world
        world.port("list topics")
        if self._group.away:
            world.wait(lambda: False, timeout)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "timed out"))
        count = sum(place.topic == topic for place in self._group.log.visible)
        there = SimpleNamespace(partitions=dict.fromkeys(range(count)))
        return SimpleNamespace(topics={topic: there})

    def close(self) -> None:
        pass


class _NamingProducer(SimProducer):
    """A producer of which the first records of each partition are looked at."""

    def __init__(
        self, cluster: SimCluster, properties: Mapping[str, object], **more: object
    ) -> None:
        super().__init__(cluster, properties, **more)
        self.begun: set[tuple[str, int]] = set()  # partitions

    def produce(self, topic: str, *given: Any, **named: Any) -> None:
        super().produce(topic, *given, **named)
        place = topic, named.get("partition", given[2] if len(given) > 2 else -1)
        pending = self._queues[place][-1]
        if place not in self.begun:
            self.begun.add(place)
            self._cluster.beginning(pending.record)
        self._put(pending)

    def _put(self, pending: Pending) -> None:
        """Take note of a record that was put."""


class TransactionalRelayProducer(_NamingProducer, SimTransactionalProducer):
    """A producer of one upstream partition: no outage is as long as transactions."""


class RelayProducer(_NamingProducer):
    """A producer that gives up what is not taken in time."""

    def __init__(
        self, cluster: SimCluster, properties: Mapping[str, object], **more: object
    ) -> None:
        super().__init__(cluster, properties, **more)
        self._within = int(str(properties.get("message.timeout.ms", 0))) / 1000

    def _put(self, pending: Pending) -> None:
        self._world.at(self._within, lambda: self._expire(pending), self.owner)

    def _expire(self, pending: Pending) -> None:
        if not pending.over:
            self._report(pending, KafkaError(_TIMED_OUT, "timed out"))
            self.fail()


@contextmanager
def taken_over(world: World, coordinator: Coordinator) -> Iterator[None]:
    """Replace the client in the modules that make one, until the end of the block."""

    def member(settings: dict[str, Any], **_: object) -> RelayConsumer:
        assert world.owner is not None
        made = RelayConsumer(coordinator, world.owner, settings["on_commit"])
        made.resets = settings["auto.offset.reset"] != "error"
        coordinator.made(made)
        return made

    def asking(*_: object, **__: object) -> _Asking:
        return _Asking(coordinator)

    fakes = [(group_consumer, member), (group, asking)]
    before = [(module, module.Consumer) for module, _ in fakes]
    for module, fake in fakes:
        module.Consumer = fake  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module, found in before:
            module.Consumer = found  # type: ignore[attr-defined]
