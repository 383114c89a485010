"""The client that asks a simulated Kafka about its topics."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException

from tests.simulation.host import SimFuture
from tests.simulation.kafka import LIMIT, SimCluster

_TIMED_OUT: Final = KafkaError._TIMED_OUT


@dataclass
class SimAdmin:
    """The client that asks about topics."""

    cluster: SimCluster
    waits: list[float] = field(default_factory=list)

    def _soon(self, answer: Callable[[], object], timeout: float) -> SimFuture:
        world = self.cluster.world
        world.port("ask Kafka")
        future = SimFuture(world)
        delay = self.cluster.delay("", 0)
        if delay > timeout:
            error = KafkaException(KafkaError(_TIMED_OUT, "no answer"))
            world.at(timeout, lambda: _fail(future, error))
            return future

        def tell() -> None:
            try:
                future.set_result(answer())
            except KafkaException as error:
                future.set_exception(error)

        world.at(delay, tell)
        return future

    def poll(self, _timeout: float) -> int:
        return 0

    def list_topics(self, topic: str = "", timeout: float = 1.0) -> object:
        del topic
        return self._soon(lambda: metadata(self.cluster), timeout).result()

    def describe_topics(self, asked: Any, *, request_timeout: float) -> dict[str, Any]:
        def described(name: str) -> object:
            topic = self.cluster.topics.get(name)
            if topic is None:
                code = KafkaError.UNKNOWN_TOPIC_OR_PART
                raise KafkaException(KafkaError(code, "unknown topic"))
            return SimpleNamespace(topic_id=topic.number, partitions=topic.partitions)

        return {
            name: self._soon(lambda name=name: described(name), request_timeout)  # type: ignore[misc]
            for name in asked.topic_names
        }

    def describe_configs(
        self, resources: list[Any], *, request_timeout: float
    ) -> dict[Any, Any]:
        return {
            one: self._soon(lambda name=one.name: self._config(name), request_timeout)  # type: ignore[misc]
            for one in resources
        }

    def _config(self, name: str) -> dict[str, SimpleNamespace]:
        topic = self.cluster.topics.get(name)  # None: it is a broker
        limit = LIMIT if topic is None else topic.limit
        return {
            "max.message.bytes": SimpleNamespace(value=str(limit)),
            "cleanup.policy": SimpleNamespace(value="delete"),
            "retention.ms": SimpleNamespace(value="-1"),
        }

    def create_topics(
        self, new: list[Any], *, request_timeout: float
    ) -> dict[str, Any]:
        def created(name: str) -> None:
            if name in self.cluster.topics:
                code = KafkaError.TOPIC_ALREADY_EXISTS
                raise KafkaException(KafkaError(code, "the topic exists"))
            self.cluster.create(name)

        return {
            one.topic: self._soon(lambda name=one.topic: created(name), request_timeout)  # type: ignore[misc]
            for one in new
        }

    def describe_cluster(self, *, request_timeout: float) -> SimFuture:
        nodes = SimpleNamespace(nodes=[SimpleNamespace(id=1)])
        return self._soon(lambda: nodes, request_timeout)


def metadata(cluster: SimCluster) -> SimpleNamespace:
    """Return what brokers tell of all topics: their partitions, and who leads them."""
    leads = cluster.transactions.has_leader
    return SimpleNamespace(
        topics={
            name: SimpleNamespace(
                partitions={
                    number: SimpleNamespace(leader=1 if leads((name, number)) else -1)
                    for number in range(len(topic.partitions))
                }
            )
            for name, topic in cluster.topics.items()
        }
    )


def _fail(future: SimFuture, error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
