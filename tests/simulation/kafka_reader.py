"""The consumer that reads the ends of a simulated Kafka's partitions."""

from collections.abc import Iterable, Mapping
from typing import Final, Self

from tests.simulation.kafka import SimCluster, SimTopic
from tests.simulation.kafka_transactions import end_of, readable
from walstream.errors import TopicLost, Transient
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.topic_reader import TopicRecord

_AT_ONCE: Final = 3  # records of an answer


class SimTopicReader:
    """Reads assigned partitions, a few records at a time."""

    def __init__(
        self, cluster: SimCluster, properties: Mapping[str, object] | None = None
    ) -> None:
        self._cluster = cluster
        level = (properties or {}).get("isolation.level")
        self._committed = level != "read_uncommitted"
        self._next: dict[Partition, int] = {}
        self._ends: dict[Partition, int] = {}  # where nothing more was, last

    def _ask(self) -> None:
        world = self._cluster.world
        world.port("read Kafka")
        if self._cluster.away:
            raise Transient("Kafka does not answer")
        world.sleep(self._cluster.delay("", 0))

    def bounds(self, topics: Iterable[str]) -> dict[Partition, OffsetBounds]:
        self._ask()
        return {
            Partition(name, number): OffsetBounds(0, self._end(name, number))
            for name in topics
            for number in range(len(self._topic(name).partitions))
        }

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        self._ask()
        # in one order: who asks may have a set of them
        return {one: self._end(*one) for one in sorted(partitions)}

    def _topic(self, name: str) -> SimTopic:
        if name not in self._cluster.topics:
            raise TopicLost(f"there is no topic {name!r}")
        return self._cluster.topics[name]

    def _end(self, name: str, number: int) -> int:
        if not self._cluster.transactions.has_leader((name, number)):
            raise Transient(f"nobody leads {name}[{number}]")
        return end_of(self._topic(name), number, committed=self._committed)

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        self._next = dict(offsets)
        self._ends.clear()

    def drop(self, partitions: Iterable[Partition]) -> None:
        for one in partitions:
            del self._next[one]
            self._ends.pop(one, None)

    def poll(self, _timeout_s: float) -> list[TopicRecord]:
        self._ask()
        found: list[TopicRecord] = []
        committed = self._committed
        for one, at in self._next.items():
            if not self._cluster.transactions.has_leader(one):
                continue
            topic = self._topic(one.topic)
            end = end_of(topic, one.number, committed=committed)
            records = topic.partitions[one.number][at : min(end, at + _AT_ONCE)]
            self._next[one] = at + len(records)
            if self._next[one] >= end:
                self._ends[one] = end
            for offset, record in enumerate(records, at):
                if not readable(topic, one.number, offset, committed=committed):
                    continue
                key, value, headers = record.key, record.value, record.headers
                time = record.timestamp
                found.append(TopicRecord(*one, offset, key, value, headers, time))
        return found

    def reached(self, bounds: Mapping[Partition, OffsetBounds]) -> bool:
        return all(self._next[one] >= where.end for one, where in bounds.items())

    def met_end(self, partition: Partition) -> bool:
        return partition in self._ends

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
