"""A simulated Kafka and a real one, as the same client's acts are done to them."""

import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.simulation.kafka import LIMIT, QUEUE, SimCluster, SimProducer
from tests.simulation.kafka_admin import SimAdmin
from tests.simulation.kafka_transactional import SimTransactionalProducer
from tests.simulation.kafka_transactions import end_of, readable
from tests.simulation.world import Violation, World
from tests.support.deadline import wait_until
from tests.support.servers.slow_link import SlowLink
from walstream.kafka.producer_config import producer_properties

PARTITIONS: Final = 2
NARROW: Final = 1000  # bytes of a record in a topic of its own
_FOREVER: Final = 1e9
_AWAY_S: Final = 1.0
_READ_S: Final = 30.0
_COMMITTED: Final = "read_committed"
_LEVELS: Final = ("read_uncommitted", _COMMITTED)
# topics by their first letter: one that takes all, one of small records, and one that
# nobody may write to
TAKES, SMALL, DENIED = "a", "n", "b"
EXPIRY_MS: Final = 500  # between a broker's looks for transactions that are too old
Log = dict[str, list[tuple[int, list[tuple[int, bytes | None]]]]]
"""What readers of all, and of what is committed, have: by partition the end, and each
record's offset and value."""
AUTHORIZER: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:nobody",
}


class SimulatedBrokers:
    """The simulation's cluster."""

    def __init__(self, seed: int) -> None:
        Violation.first = ""  # of another schedule, which was to violate something
        self.world = World(seed)
        self.cluster = SimCluster(self.world, lambda _topic: PARTITIONS)
        self.cluster.denied_until = _FOREVER
        self.admin: Any = SimAdmin(self.cluster)

    def create(self, topic: str) -> None:
        made = self.cluster.create(topic)
        if topic[0] == SMALL:
            made.limit = NARROW

    def recreate(self, topic: str) -> None:
        self.cluster.recreate(topic)

    def producer(self) -> Any:
        return SimProducer(self.cluster, {"enable.gapless.guarantee": True})

    def pause(self, seconds: float) -> None:
        self.world.wait(lambda: False, seconds)

    def go_away(self) -> None:
        """Let nothing arrive until it comes back."""
        self.cluster.away_until = self.world.now + _AWAY_S

    def come_back(self) -> None:
        self.world.wait(lambda: not self.cluster.away, _AWAY_S)

    def lose_answers(self, _producer: Any) -> None:
        """Let requests arrive, and their answers be lost: they are sent again."""
        self.cluster.away_until = self.world.now + 0.3

    def transactional(self, id_: str, lasts_ms: int) -> Any:
        """Make a producer; one that nobody made before has the id."""
        given = {"transactional.id": id_, "transaction.timeout.ms": lasts_ms}
        return SimTransactionalProducer(self.cluster, given)

    def let_expire(self, _topic: str) -> None:
        """Wait until all that is open there is too old, and over."""
        self.pause(15.0)  # brokers look every ten seconds

    def log(self, topic: str) -> Log:
        found = self.cluster.topics[topic]

        def read(committed: bool) -> list[tuple[int, list[tuple[int, bytes | None]]]]:
            parts = []
            for number, stored in enumerate(found.partitions):
                end = end_of(found, number, committed=committed)
                there = [
                    (at, stored[at].value)
                    for at in range(end)
                    if readable(found, number, at, committed=committed)
                ]
                parts.append((end, there))
            return parts

        return {level: read(level == _COMMITTED) for level in _LEVELS}

    def contents(self, topic: str) -> list[list[bytes | None]]:
        parts = self.cluster.topics[topic].partitions
        return [[one.value for one in records] for records in parts]


class RealBrokers:
    """A broker behind a link: clients know it by the link's address alone."""

    def __init__(self, link: SlowLink, bootstrap: str) -> None:
        self._link = link
        self._bootstrap = {"bootstrap.servers": bootstrap}
        self.admin: Any = AdminClient(dict(self._bootstrap))

    def deny(self) -> None:
        """Take the right to write to a topic of that letter from everybody."""
        rule = AclBinding(
            ResourceType.TOPIC,
            DENIED,
            ResourcePatternType.PREFIXED,
            "User:*",
            "*",
            AclOperation.WRITE,
            AclPermissionType.DENY,
        )
        self.admin.create_acls([rule])[rule].result(30)
        others = AclBinding(
            ResourceType.TOPIC,
            "*",
            ResourcePatternType.LITERAL,
            "User:*",
            "*",
            AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        self.admin.create_acls([others])[others].result(30)

    def create(self, topic: str) -> None:
        wait_until(lambda: self._made(topic), 60, "a broker takes topics")
        wait_until(lambda: self._is_told(topic), 30, f"{topic} is there")

    def _made(self, topic: str) -> bool:
        """Create it, unless the only broker is fenced: it was late."""
        config = {"max.message.bytes": str(NARROW)} if topic[0] == SMALL else {}
        asked = self.admin.create_topics([NewTopic(topic, PARTITIONS, config=config)])
        try:
            asked[topic].result(30)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.INVALID_REPLICATION_FACTOR:
                return False
            raise
        return True

    def _is_told(self, topic: str) -> bool:
        found = self.admin.list_topics(timeout=30).topics.get(topic)
        return found is not None and len(found.partitions) == PARTITIONS

    def recreate(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(30)
        wait_until(
            lambda: topic not in self.admin.list_topics(timeout=30).topics,
            30,
            f"{topic} is gone",
        )
        self.create(topic)

    def producer(self) -> Any:
        given = {
            **producer_properties(self._bootstrap, LIMIT, LIMIT),
            "queue.buffering.max.messages": QUEUE,
            "linger.ms": 0,
            "compression.type": "none",  # a record is as large as it says
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "retry.backoff.ms": 20,
            "error_cb": lambda _error: None,
        }
        return Producer(given)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def go_away(self) -> None:
        """Let nothing arrive until it comes back."""
        self._link.rate = 0
        self._link.cut()

    def come_back(self) -> None:
        self._link.cut()
        self._link.rate = None

    def lose_answers(self, producer: Any) -> None:
        """Let requests arrive, and their answers be lost: they are sent again."""
        self._link.rate = 0
        before = self._link.asked
        producer.poll(0)
        wait_until(lambda: self._link.asked > before, 30, "a request is sent")
        self.come_back()

    def transactional(self, id_: str, lasts_ms: int) -> Any:
        """Make a producer; one that nobody made before has the id."""
        given = {
            **producer_properties(self._bootstrap, LIMIT, LIMIT),
            "transactional.id": id_,
            "transaction.timeout.ms": lasts_ms,
            "message.timeout.ms": lasts_ms,
            "linger.ms": 0,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 50,
            "retry.backoff.ms": 20,
            "error_cb": lambda _error: None,
        }
        return Producer(given)

    def let_expire(self, topic: str) -> None:
        """Wait until all that is open there is too old, and over."""

        def over() -> bool:
            everything, committed = (self._read(topic, level) for level in _LEVELS)
            return [end for end, _ in everything] == [end for end, _ in committed]

        wait_until(over, _READ_S, "the broker ends a transaction that is too old")

    def log(self, topic: str) -> Log:
        return {level: self._read(topic, level) for level in _LEVELS}

    def contents(self, topic: str) -> list[list[bytes | None]]:
        values = []
        for end, records in self._read(topic, _LEVELS[0]):
            assert [offset for offset, _ in records] == list(range(end))
            values.append([value for _, value in records])
        return values

    def _read(
        self, topic: str, level: str
    ) -> list[tuple[int, list[tuple[int, bytes | None]]]]:
        """Read each partition to its end."""
        given = {
            "group.id": "comparison",
            "isolation.level": level,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # an end is told when a fetch found nothing
        }
        consumer = Consumer({**self._bootstrap, **given})
        records: list[list[tuple[int, bytes | None]]] = [[] for _ in range(PARTITIONS)]
        ends: dict[int, int] = {}
        deadline = time.monotonic() + _READ_S
        try:
            parts = range(PARTITIONS)
            consumer.assign([TopicPartition(topic, part, 0) for part in parts])
            while len(ends) < PARTITIONS:
                assert time.monotonic() < deadline, "the ends are not reached"
                for message in consumer.consume(100, timeout=0.05):
                    error, part = message.error(), message.partition() or 0
                    offset = message.offset() or 0
                    if error is None:
                        records[part].append((offset, message.value()))
                    elif error.code() == KafkaError._PARTITION_EOF:
                        ends[part] = offset
        finally:
            consumer.close()
        return [(ends[part], records[part]) for part in parts]


Brokers = SimulatedBrokers | RealBrokers
Act = Callable[[Brokers], object]
