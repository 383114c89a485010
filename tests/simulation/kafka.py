"""A Kafka as a producer sees it: partitions, acknowledgements, outages, zombies."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException

from tests.simulation.kafka_transactions import Fates, TransactionLog
from tests.simulation.world import Process, World

LIMIT: Final = 1_048_588
DENIED: Final = "b"  # the sink whose rights are taken away
QUEUE: Final = 8  # records of a producer: few, so that it is full now and then
_NONE_LEFT: Final = KafkaError._PURGE_QUEUE
_IN_FLIGHT: Final = KafkaError._PURGE_INFLIGHT
BATCH: Final = 4
_DELAYS: Final = (0.0005, 0.001, 0.003, 0.01)  # seconds


class Record(NamedTuple):
    """A record as it lies in a partition."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, Any], ...]
    timestamp: int = 0  # milliseconds since 1970 UTC


@dataclass(eq=False)
class Pending:
    """A record in a producer, and who hears of it."""

    record: Record
    hear: Callable[..., None]
    put: float  # when
    sent: bool = False  # a broker may have it
    appended: bool = False
    over: bool = False  # reported
    offset: int | None = None  # where it is, if a broker took it


@dataclass
class SimTopic:
    name: str
    number: int
    partitions: list[list[Record]]
    limit: int = LIMIT  # bytes of a record
    fates: dict[int, Fates] = field(default_factory=dict)  # where transactions wrote


class SimMessage:
    """The message of a delivery report."""

    def __init__(self, record: Record, offset: int | None) -> None:
        self.record = record
        self._offset = offset

    def topic(self) -> str:
        return self.record.topic

    def partition(self) -> int:
        return self.record.partition

    def offset(self) -> int | None:
        return self._offset


class SimCluster:
    """Brokers: topics, and whether and how fast they answer."""

    def __init__(self, world: World, partitions: Callable[[str], int]) -> None:
        self.world = world
        self.topics: dict[str, SimTopic] = {}
        self.producers: list[SimProducer] = []
        self.away_until = 0.0
        self.denied_until = 0.0  # records of one sink are refused
        self.slow: dict[tuple[str, int], float] = {}  # until when
        self.refusing_until = 0.0  # each producer's first batch in a partition
        self.zombies = False  # may what a dead one sent arrive behind its successor's?
        self.transactions = TransactionLog(self)
        # a reader of what is committed may read it
        self.appended: Callable[[Record], None] = lambda _record: None
        # a producer puts its first record of a partition
        self.beginning: Callable[[Record], None] = lambda _record: None
        self.producer: Callable[..., SimProducer] = SimProducer
        self.transactional_producer: Callable[..., SimProducer] | None = None
        # by whom, and when the first of it was put
        self.sending: Callable[[Process | None, float], None] = lambda _owner, _put: (
            None
        )
        self._partitions = partitions
        self._made = 0

    def draw_number(self, least: int = 0) -> int:
        """Return the id of a new topic."""
        self._made = max(self._made + 1, least)
        return self._made

    @property
    def away(self) -> bool:
        return self.world.now < self.away_until

    def create(self, name: str) -> SimTopic:
        if name not in self.topics:
            parts: list[list[Record]] = [[] for _ in range(self._partitions(name))]
            self.topics[name] = SimTopic(name, self.draw_number(), parts)
        return self.topics[name]

    def widen(self) -> None:
        """Let every topic take any record."""
        for topic in self.topics.values():
            topic.limit = LIMIT

    def recreate(self, name: str) -> None:
        """Delete a topic, and create another of its name."""
        self.topics.pop(name, None)
        self.create(name)

    def append(self, record: Record) -> int:
        """Store a record; return its offset."""
        value = record.value or b""
        self.world.note(f"append {record.topic} {record.partition}", value)
        return self.transactions.append_alone(self.topics[record.topic], record)

    @staticmethod
    def marker(place: tuple[str, int]) -> Record:
        """Return what stands for the end of a transaction."""
        return Record(*place, None, None, ())

    def delay(self, topic: str, partition: int) -> float:
        """Draw how long a request takes, or waits for an outage to end."""
        draw = self.world.random
        until = max(self.away_until, self.slow.get((topic, partition), 0.0))
        waits = max(0.0, until - self.world.now)
        return waits + _DELAYS[int(draw.random() * len(_DELAYS))]

    def lose(self, owner: Process) -> None:
        """Let what a killed process had on the wire arrive, up to a point, now."""
        for producer in self.producers:
            if producer.owner is owner:
                producer.die()
        self.producers = [one for one in self.producers if one.owner is not owner]


class SimProducer:
    """An idempotent producer: per partition in order, each record once."""

    def __init__(
        self, cluster: SimCluster, properties: Mapping[str, object], **_: object
    ) -> None:
        self._cluster = cluster
        # what fails for good stops the producer: no later record is sent
        self._gapless = bool(properties.get("enable.gapless.guarantee"))
        self._world = world = cluster.world
        world.port("producer made")
        self.owner = world.owner
        self._queues: dict[tuple[str, int], deque[Pending]] = {}
        self._busy: set[tuple[str, int]] = set()
        self._known: set[tuple[str, int]] = set()  # to brokers: where it wrote
        self._put_off: set[tuple[str, int]] = set()  # where its first was refused
        self._reports: deque[tuple[Pending, KafkaError | None]] = deque()
        self._open = 0
        self.fatal: KafkaError | None = None
        self._told = False
        self.failing = 0  # so many of the next records are refused
        cluster.producers.append(self)

    def __len__(self) -> int:
        return self._open

    def produce(  # noqa: PLR0913, PLR0917 - confluent_kafka's own
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = -1,
        callback: Callable[..., None] = lambda *_: None,
        _on_delivery: object = None,
        timestamp: int = 0,
        headers: Iterable[tuple[str, Any]] | None = None,
    ) -> None:
        self._world.port("produce")
        if self.fatal is not None:
            raise KafkaException(KafkaError(KafkaError._FATAL, "it failed before"))
        if self._open >= QUEUE:
            raise BufferError
        record = Record(topic, partition, key, value, tuple(headers or ()), timestamp)
        self._open += 1
        place = topic, partition
        self._queues.setdefault(place, deque()).append(
            Pending(record, callback, self._world.now)
        )
        self._send(place)

    def _send(self, place: tuple[str, int]) -> None:
        if place in self._busy or not self._queues.get(place):
            return
        self._busy.add(place)
        self._world.at(
            self._cluster.delay(*place), lambda: self._request(place), self.owner
        )

    def _request(self, place: tuple[str, int]) -> None:
        """Put a batch on the wire."""
        queue = self._queues[place]
        batch = [queue[at] for at in range(min(len(queue), BATCH))]
        if batch:
            self._cluster.sending(self.owner, batch[0].put)
        for pending in batch:
            pending.sent = True
        delay = self._cluster.delay(*place)
        self._world.at(delay, lambda: self._append(place, batch))

    def _append(self, place: tuple[str, int], batch: list[Pending]) -> None:
        if self._cluster.away:  # the request is repeated: brokers know what they have
            self._world.at(
                self._cluster.delay(*place), lambda: self._append(place, batch)
            )
            return
        if refused := self._refused(place, batch):
            self._world.at(0.0, lambda: self._answer(place, batch, refused), self.owner)
            return
        if batch and self._puts_off(place):
            self._put_off.add(place)
            self._refuse_first(place, batch)
            return
        if self.failing and any(not pending.over for pending in batch):
            self.failing -= 1
            cause = KafkaError(KafkaError.UNKNOWN, "the record was given up")
            if self._world.random.random() < 0.5:
                self._store(batch)  # the answer alone was lost
            self._world.at(0.0, lambda: self._answer(place, batch, cause), self.owner)
            return
        self._store(batch)
        delay = self._cluster.delay(*place)
        self._world.at(delay, lambda: self._answer(place, batch, None), self.owner)

    def _refused(
        self, place: tuple[str, int], batch: list[Pending]
    ) -> KafkaError | None:
        """Return why the brokers never take a batch."""
        topic, cluster = place[0], self._cluster
        if self._world.now < cluster.denied_until and topic[0] == DENIED:
            return KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "no right")
        sizes = [len(one.record.value or b"") for one in batch if not one.over]
        if max(sizes, default=0) > cluster.topics[topic].limit:
            return KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large")
        return None

    def _puts_off(self, place: tuple[str, int]) -> bool:
        """Return whether the brokers refuse a batch for now, as its first there."""
        refusing = self._world.now < self._cluster.refusing_until
        return refusing and place not in self._known | self._put_off

    def _refuse_first(self, place: tuple[str, int], batch: list[Pending]) -> None:
        """Have a batch sent again, while the next one is on its way, if there is one.

        Brokers that know nothing of the producer take that one whatever its number is,
        and refuse the first for ever (KAFKA-14359).
        """
        queue = self._queues[place]
        for pending in batch:
            pending.sent = False
        following = [one for one in queue if one not in batch][:BATCH]
        for pending in following:
            pending.sent = True
        delay = self._cluster.delay(*place)
        self._world.at(delay, lambda: self._take_next(place, batch, following))

    def _take_next(
        self, place: tuple[str, int], batch: list[Pending], following: list[Pending]
    ) -> None:
        if following:
            self._store(following)
            both = [*batch, *following]
            delay = self._cluster.delay(*place)
            self._world.at(delay, lambda: self._answer(place, both, None), self.owner)
        elif batch[0] in self._queues[place]:  # it was not dropped
            for pending in batch:
                pending.sent = True
            self._append(place, batch)

    def _store(self, batch: list[Pending]) -> None:
        for pending in batch:
            if not pending.appended:
                pending.appended = True
                self._known.add((pending.record.topic, pending.record.partition))
                pending.offset = self._cluster.append(pending.record)

    def _answer(
        self, place: tuple[str, int], batch: list[Pending], error: KafkaError | None
    ) -> None:
        self._busy.discard(place)
        queue = self._queues[place]
        for pending in batch:
            if queue and queue[0] is pending:
                queue.popleft()
            self._report(pending, error)
        if error is not None and self._gapless:
            self.fail(KafkaError._GAPLESS_GUARANTEE)
        self._send(place)

    def _report(self, pending: Pending, error: KafkaError | None) -> None:
        if not pending.over:
            pending.over = True
            self._reports.append((pending, error))

    def poll(self, timeout: float = 0.0) -> int:
        self._world.port("poll reports")
        if timeout:
            self._world.wait(lambda: bool(self._reports), timeout)
        else:
            self._world.pass_by()
        served = 0
        while self._reports:
            pending, error = self._reports.popleft()
            self._open -= 1
            served += 1
            pending.hear(error, SimMessage(pending.record, pending.offset))
        if self.fatal is not None and not self._told:
            self._told = True
            raise KafkaException(self.fatal)
        return served

    def flush(self, timeout: float = 0.0) -> int:
        self._world.port("flush")
        if self._open and not self._reports:
            self._world.wait(lambda: not self._open or bool(self._reports), timeout)
        self.poll(0)
        return self._open

    def purge(self) -> None:
        """Drop all; what is on the wire may arrive, before what others send later."""
        self._world.port("purge")
        waiting = [one for queue in self._queues.values() for one in queue]
        self.die()
        for pending in waiting:
            code = _IN_FLIGHT if pending.sent else _NONE_LEFT
            self._report(pending, KafkaError(code, "purged"))

    def fail(self, code: int = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER) -> None:
        """Have a fatal error; this one comes of brokers that forgot the producer."""
        if self.fatal is None:
            self.fatal = KafkaError(code, "the producer is fenced", fatal=True)
            for queue in self._queues.values():
                for pending in [one for one in queue if not one.sent]:
                    self._report(pending, KafkaError(_NONE_LEFT, "purged"))
                    queue.remove(pending)

    def die(self) -> None:
        """Let a part of what is on the wire arrive, in order; lose the rest."""
        for queue in self._queues.values():
            sent = [one for one in queue if one.sent and not one.appended]
            arrives = self._world.random.randint(0, len(sent))
            if not self._cluster.zombies:  # else in its time
                self._store(sent[:arrives])
            for pending in sent[arrives:]:
                pending.appended = True  # it never will
            queue.clear()

    def list_topics(self, _topic: str, _timeout: float) -> None:
        pass
