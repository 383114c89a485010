"""A consumer group as a member sees it: rebalances, offsets, and what was fetched.

Assignments are cooperative: a member keeps what it has until it gives it up in a poll,
and only then another one gets it. Who is frozen for longer than its session is out: its
partitions are others' before it knows.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from consumer.group.assigned_partition import Place
from tests.simulation.kafka import Record, SimCluster
from tests.simulation.world import Process, World

SESSION_S: Final = 45.0
_COMMITS_S: Final = 1.0
_LATE: Final = 0.15  # share of seeks for which it is too early
_BATCHES: Final = (1, 2, 5, 20)

Heard = Callable[[Any, list[TopicPartition]], None]


class Fetched:
    """A message."""

    def __init__(self, record: Record, offset: int) -> None:
        self._record, self._offset = record, offset

    def __len__(self) -> int:
        return len(self._record.value or b"")

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return self._record.topic

    def partition(self) -> int:
        return self._record.partition

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        return self._record.key

    def value(self) -> bytes | None:
        return self._record.value

    def headers(self) -> tuple[tuple[str, Any], ...]:
        return self._record.headers

    def timestamp(self) -> tuple[int, int]:
        return 1, 0


class Log:
    """Partitions that fill with time: what is in a cluster comes by and by."""

    def __init__(self, world: World, cluster: SimCluster, topics: list[str]) -> None:
        self.world = world
        self.cluster = cluster
        self.low: dict[Place, int] = {}  # below it all was deleted
        self.visible: dict[Place, int] = {
            Place(name, part): 0
            for name in topics
            for part in range(len(cluster.topics[name].partitions))
        }

    def records(self, place: Place) -> list[Record]:
        return self.cluster.topics[place.topic].partitions[place.partition]

    def grow(self) -> bool:
        """Let some more be there; False: it is all there."""
        left = [
            place
            for place, count in self.visible.items()
            if count < len(self.records(place))
        ]
        if left:
            place = self.world.random.choice(left)
            self.visible[place] += self.world.random.choice((1, 3, 10))
            self.visible[place] = min(self.visible[place], len(self.records(place)))
        return bool(left)

    def grow_whole(self) -> None:
        while self.grow():
            pass


@dataclass(eq=False)
class Coordinator:
    """The broker that knows a group's members, and its offsets."""

    log: Log
    members: list["SimConsumer"] = field(default_factory=list)
    offsets: dict[Place, int] = field(default_factory=dict)
    notes: dict[Place, str] = field(default_factory=dict)  # kept beside them
    storing: Callable[[Place, int], None] = lambda _place, _offset: None
    made: Callable[["SimConsumer"], None] = lambda _member: None
    # a member begins with a partition at an offset
    began: Callable[["SimConsumer", Place, int], None] = lambda *_: None
    away_until: float = 0.0
    rebalances: int = 0
    lost: int = 0  # assignments that were others' before their member knew

    @property
    def away(self) -> bool:
        return self.log.world.now < self.away_until

    def join(self, member: "SimConsumer") -> None:
        if member not in self.members:
            self.members.append(member)
            self.assign()

    def leave(self, member: "SimConsumer") -> None:
        if member in self.members:
            self.members.remove(member)
            member.wanted = set()
            self.assign()

    def expel(self, member: "SimConsumer") -> None:
        """Take its partitions: it was not heard of."""
        if member in self.members:
            member.is_lost = True
            self.lost += bool(member.owned)
            self.leave(member)

    def assign(self) -> None:
        """Draw who is to have what."""
        self.rebalances += 1
        draw = self.log.world.random
        for member in self.members:
            member.wanted = set()
        for at, place in enumerate(
            draw.sample([*self.log.visible], len(self.log.visible))
        ):
            if self.members:
                self.members[at % len(self.members)].wanted.add(place)

    def is_free(self, place: Place) -> bool:
        return not any(place in one.owned for one in self.members)


class SimConsumer:
    """A member's client; each poll may call its rebalance callbacks."""

    def __init__(self, coordinator: Coordinator, owner: Process) -> None:
        self._group = coordinator
        self._log = coordinator.log
        self._world = coordinator.log.world
        self.owner = owner
        self.owned: set[Place] = set()
        self.wanted: set[Place] = set()
        self.is_lost = self.closed = False
        self._at: dict[Place, int] = {}
        self._paused: set[Place] = set()
        self._stored: dict[Place, int] = {}
        self._hear: dict[str, Heard] = {}
        self._world.at(_COMMITS_S, self._commit_again, owner)

    def subscribe(self, _topics: list[str], **hear: Heard) -> None:
        self._world.port("subscribe")
        self._hear = hear
        self._group.join(self)

    # rebalances

    def _attend(self) -> None:
        """Call what a poll calls."""
        if self.closed:
            return
        if self.is_lost:
            self.is_lost = False
            self._tell("on_lost", self.owned)
            self._group.join(self)
            return
        if self._group.away:
            return
        if over := self.owned - self.wanted:
            self._commit()
            self._tell("on_revoke", over)
        elif new := self._gained():
            self.owned |= new
            self._begin(new)
            self._hear["on_assign"](self, _partitions(new))

    def _begin(self, places: set[Place]) -> None:
        for place in places:
            self._at[place] = self._group.offsets.get(place, OFFSET_BEGINNING)

    def _gained(self) -> set[Place]:
        return {one for one in self.wanted - self.owned if self._group.is_free(one)}

    def _tell(self, what: str, places: set[Place]) -> None:
        gone = set(places)
        if what == "on_lost":  # nothing of theirs is its own any more
            self.owned -= gone
        self._hear[what](self, _partitions(gone))
        self._commit()
        self.owned -= gone
        self._paused -= gone
        for place in gone:
            self._stored.pop(place, None)

    # fetches

    def consume(self, most: int, timeout: float) -> list[Fetched]:
        del timeout
        self._world.port("consume")
        self._attend()
        return self._taken(most)

    def poll(self, timeout: float) -> Fetched | None:
        self._world.port("poll Kafka")
        self._attend()
        if timeout and not self.closed:
            self._world.wait(self._is_ready, timeout)
        found = self._taken(1)
        return found[0] if found else None

    def _is_ready(self) -> bool:
        if self.is_lost or self._readable():
            return True
        return not self._group.away and bool(self.owned - self.wanted or self._gained())

    def _readable(self) -> list[Place]:
        if self._group.away or self.closed:
            return []
        return sorted(
            place
            for place in self.owned - self._paused
            if max(0, self._at[place]) < self._log.visible[place]
        )

    def _taken(self, most: int) -> list[Fetched]:
        places = self._readable()
        if not places:
            return []
        place = self._world.random.choice(places)
        records = self._log.records(place)
        first = max(self._at[place], self._log.low.get(place, 0), 0)
        count = min(most, self._world.random.choice(_BATCHES))
        end = min(self._log.visible[place], first + count)
        self._at[place] = end
        return [Fetched(records[at], at) for at in range(first, end)]

    def seek(self, partition: TopicPartition) -> None:
        place = Place(partition.topic, partition.partition)
        if place not in self.owned or self._world.random.random() < _LATE:
            code = KafkaError._STATE
            raise KafkaException(KafkaError(code, "erroneous state"))
        self._at[place] = partition.offset

    def pause(self, partitions: list[TopicPartition]) -> None:
        self._paused |= {Place(one.topic, one.partition) for one in partitions}

    def resume(self, partitions: list[TopicPartition]) -> None:
        self._paused -= {Place(one.topic, one.partition) for one in partitions}

    # offsets

    def store_offsets(self, offsets: list[TopicPartition]) -> None:
        for one in offsets:
            place = Place(one.topic, one.partition)
            if place not in self.owned:
                raise KafkaException(KafkaError(KafkaError._STATE, "not assigned"))
            self._stored[place] = one.offset

    def _commit_again(self) -> None:
        if not self.closed:
            self._commit()
            self._world.at(_COMMITS_S, self._commit_again, self.owner)

    def _commit(self) -> None:
        if self in self._group.members and not (self.is_lost or self._group.away):
            self._group.offsets.update(self._stored)

    def committed(
        self, partitions: list[TopicPartition], timeout: float
    ) -> list[TopicPartition]:
        self._world.port("committed")
        if self._group.away:
            self._world.wait(lambda: False, timeout)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "timed out"))
        known = self._group.offsets
        return [
            TopicPartition(
                one.topic,
                one.partition,
                known.get(Place(one.topic, one.partition), OFFSET_INVALID),
            )
            for one in partitions
        ]

    def get_watermark_offsets(
        self, partition: TopicPartition, cached: bool
    ) -> tuple[int, int]:
        del cached
        place = Place(partition.topic, partition.partition)
        return self._log.low.get(place, 0), self._log.visible[place]

    def list_topics(self, *_: object, timeout: float) -> None:
        self._world.port("list topics")
        if self._group.away:
            self._world.wait(lambda: False, timeout)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "timed out"))

    def close(self) -> None:
        self._world.port("close")
        if self.owned and not self.is_lost:
            self._commit()
            self._tell("on_revoke", self.owned)
        self.closed = True
        self._group.leave(self)


def _partitions(places: set[Place]) -> list[TopicPartition]:
    return [TopicPartition(*place) for place in sorted(places)]
