"""One seed's acts of a producer, on a simulated and a real Kafka: what differs."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.simulation.kafka import QUEUE
from tests.simulation.real.brokers import DENIED, PARTITIONS, SMALL, TAKES, Brokers
from tests.simulation.real.pair import ComparedPair

_KINDS: Final = {
    "send": 6,
    "outage": 2,
    "lost answers": 3,
    "full": 1,
    "purge": 2,
    "recreate": 1,
    "large": 2,
    "denied": 1,
    "ask": 2,
}
_LARGE: Final = 4000  # bytes: more than a narrow topic takes
_POLL_S: Final = 0.05
_POLLS: Final = 600


def drawn(seed: int) -> list[tuple[str, int]]:
    """Draw the acts of one seed."""
    draw = random.Random(seed)  # noqa: S311 - repeatable on purpose
    kinds = draw.choices(list(_KINDS), list(_KINDS.values()), k=draw.choice((4, 8)))
    return [(kind, draw.getrandbits(32)) for kind in [*kinds, "send"]]


@dataclass
class Side:
    """One Kafka, its producer, and what was heard of each record."""

    brokers: Brokers
    heard: list[str] = field(default_factory=list)  # what a client was told
    reports: dict[str, str] = field(default_factory=dict)  # by record
    ids: dict[str, list[str]] = field(default_factory=dict)  # of topics

    def __post_init__(self) -> None:
        self.producer = self.brokers.producer()

    def send(self, topic: str, part: int, value: str) -> None:
        def hear(error: KafkaError | None, _message: object) -> None:
            self.reports[value[:20]] = "delivered" if error is None else error.name()

        try:
            self.producer.produce(topic, value.encode(), b"k", part, hear)
        except BufferError:
            self.heard.append("the queue is full")
        except KafkaException as error:
            fatal = "fatal " if error.args[0].fatal() else ""
            self.heard.append(f"produce: {fatal}{error.args[0].name()}")

    @property
    def told(self) -> list[str]:
        reports = [f"{value}: {report}" for value, report in self.reports.items()]
        return [*self.heard, *sorted(reports)]

    def settle(self) -> None:
        """Hear of all that was sent."""
        for _ in range(_POLLS):
            if not len(self.producer):
                return
            self._poll(_POLL_S)
        self.heard.append("records are left")

    def _poll(self, wait_s: float) -> None:
        try:
            self.producer.poll(wait_s)
        except KafkaException as error:
            fatal = "fatal " if error.args[0].fatal() else ""
            self.heard.append(f"poll: {fatal}{error.args[0].name()}")

    def close(self) -> None:
        """Drop all that is left, as walstream does, and begin anew."""
        self.producer.purge()
        self._poll(0.0)
        self.producer = self.brokers.producer()


@dataclass
class Producing(ComparedPair[Side]):
    """The same acts on both; each ends with all that was heard, and what is there."""

    def __post_init__(self) -> None:
        self._topics = [f"{letter}.{self.name}" for letter in (TAKES, SMALL, DENIED)]
        for topic in self._topics:
            self._both(lambda side, topic=topic: side.brokers.create(topic))  # type: ignore[misc]

    def _compare(self) -> None:
        self._same("told", *(side.told for side in (self.model, self.truth)))
        for topic in self._topics:
            there = [s.brokers.contents(topic) for s in (self.model, self.truth)]
            self._same(topic, *there)

    def _records(
        self, draw: random.Random, most: int = QUEUE
    ) -> list[tuple[str, int, str]]:
        records = []
        for _ in range(draw.randint(1, most)):
            self._sent += 1
            topic = self._topics[draw.choice((0, 0, 0, 1))]
            records.append((topic, draw.randrange(PARTITIONS), f"{self._sent}"))
        return records

    def _put(self, side: Side, records: list[tuple[str, int, str]]) -> None:
        for topic, part, value in records:
            side.send(topic, part, value)

    # acts

    def _send(self, draw: random.Random) -> None:
        records = self._records(draw)
        self._both(lambda side: self._put(side, records))
        self._both(Side.settle)

    def _outage(self, draw: random.Random) -> None:
        """Have records wait for brokers: they arrive once these are back."""
        records = self._records(draw)

        def act(side: Side) -> None:
            side.brokers.go_away()
            self._put(side, records)
            side.brokers.pause(0.1)
            side.brokers.come_back()
            side.settle()

        self._both(act)

    def _lost_answers(self, draw: random.Random) -> None:
        """Have a request be sent again: each record is there once, in order."""
        records = self._records(draw)

        def act(side: Side) -> None:
            self._put(side, records[:1])
            side.settle()  # connected, so that a request is on its way at once
            self._put(side, records[1:])
            side.brokers.lose_answers(side.producer)
            side.settle()

        records.append((self._topics[0], 0, f"{self._sent}+"))
        self._both(act)

    def _full(self, draw: random.Random) -> None:
        records = [
            (self._topics[0], draw.randrange(PARTITIONS), f"{self._sent}.{at}")
            for at in range(QUEUE + 2)
        ]
        self._sent += 1

        def act(side: Side) -> None:
            side.brokers.go_away()
            self._put(side, records)
            side.brokers.come_back()
            side.settle()

        self._both(act)

    def _purge(self, draw: random.Random) -> None:
        """Drop what waits: it never arrives."""
        records = self._records(draw)

        def act(side: Side) -> None:
            side.brokers.go_away()
            self._put(side, records)
            side.close()
            side.brokers.come_back()

        self._both(act)

    def _recreate(self, draw: random.Random) -> None:
        """Create a topic again: it is empty, and takes what comes then."""
        self._both(lambda side: side.brokers.recreate(self._topics[0]))
        self._ask(draw)
        self._send(draw)

    def _large(self, draw: random.Random) -> None:
        """Send what is too large: the producer ends, and nothing overtakes it."""
        self._refused(draw, self._topics[1], f"{self._sent}" + "x" * _LARGE)

    def _denied(self, draw: random.Random) -> None:
        self._refused(draw, self._topics[2], f"{self._sent}")

    def _refused(self, draw: random.Random, topic: str, value: str) -> None:
        self._sent += 1
        part = draw.randrange(PARTITIONS)

        def act(side: Side) -> None:
            side.send(topic, part, f"refused {value}")
            side.settle()
            side.send(self._topics[0], 0, f"behind {self._sent}")
            side.settle()
            side.close()

        self._both(act)

    def _ask(self, _draw: random.Random) -> None:
        """Ask as walstream does."""
        self._both(self._asked)

    def _asked(self, side: Side) -> None:
        admin: Any = side.brokers.admin
        names = [*self._topics, "absent"]
        told = admin.describe_topics(TopicCollection(names), request_timeout=30)
        side.heard += [_answer(partial(_described, side, n, told[n])) for n in names]
        resource = ConfigResource(ResourceType.TOPIC, self._topics[1])
        asked = admin.describe_configs([resource], request_timeout=30)
        ((_, future),) = asked.items()
        config = future.result(30)
        side.heard += [
            f"{key}={config[key].value}"
            for key in ("max.message.bytes", "cleanup.policy")
        ]
        again = admin.create_topics([NewTopic(self._topics[0], 1)], request_timeout=30)
        side.heard.append(_answer(lambda: again[self._topics[0]].result(30)))


def _described(side: Side, name: str, future: Any) -> str:
    topic = future.result(30)
    ids = side.ids.setdefault(name, [])
    if str(topic.topic_id) not in ids:
        ids.append(str(topic.topic_id))
    return f"{len(topic.partitions)} partitions, topic {len(ids)} of its name"


def _answer(ask: Callable[[], object]) -> str:
    try:
        return str(ask())
    except KafkaException as error:
        return str(error.args[0].name())
