"""The consumer that reads the ends of a simulated Kafka's partitions."""

from collections.abc import Iterable, Mapping
from typing import Final

from tests.simulation.kafka import SimCluster
from walstream.errors import Transient
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.topic_reader import TopicRecord

_AT_ONCE: Final = 3  # records of an answer


class SimTopicReader:
    """Reads assigned partitions, a few records at a time."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self._next: dict[Partition, int] = {}

    def _ask(self) -> None:
        world = self._cluster.world
        world.port("read Kafka")
        if self._cluster.away:
            raise Transient("Kafka does not answer")
        world.sleep(self._cluster.delay("", 0))

    def bounds(self, topics: Iterable[str]) -> dict[Partition, OffsetBounds]:
        self._ask()
        return {
            Partition(name, number): OffsetBounds(0, len(records))
            for name in topics
            for number, records in enumerate(self._cluster.topics[name].partitions)
        }

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        self._next = dict(offsets)

    def poll(self, _timeout_s: float) -> list[TopicRecord]:
        self._ask()
        found: list[TopicRecord] = []
        for one, at in self._next.items():
            records = self._cluster.topics[one.topic].partitions[one.number]
            taken = records[at : at + _AT_ONCE]
            self._next[one] = at + len(taken)
            for offset, record in enumerate(taken, at):
                key, value, headers = record.key, record.value, record.headers
                time = record.timestamp
                found.append(TopicRecord(*one, offset, key, value, headers, time))
        return found

    def reached(self, bounds: Mapping[Partition, OffsetBounds]) -> bool:
        return all(self._next[one] >= where.end for one, where in bounds.items())

    def close(self) -> None:
        pass
