"""Creation of missing topics."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

import structlog
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    NewTopic,
)

from walstream.errors import Transient, WalstreamError
from walstream.kafka.admin_client import await_controller, in_parts
from walstream.kafka.errors import creation_error, positions_lost, topic_lost
from walstream.telemetry.fields import TOPIC

CREATED_TIMEOUT_S: Final = 30.0
_AT_ONCE: Final = 100  # a controller takes 10,000 partitions in one request

_COMPACTED: Final = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 << 20),  # what is compacted are segments that are full
    "min.cleanable.dirty.ratio": "0.1",
}

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Creation:
    """Settings for missing topics; if `allowed` is False they have to exist."""

    allowed: bool
    partitions: int = 0  # 0: the broker's default
    replication: int = 0
    config: Mapping[str, str] = field(default_factory=dict)
    single: frozenset[str] = frozenset()  # topics that have one partition
    compacted: frozenset[str] = frozenset()  # those that keep the last of each key

    def partitions_of(self, name: str) -> int:
        """Return how many partitions this topic gets; 0: the broker's default."""
        return 1 if name in self.single else self.partitions

    def config_of(self, name: str) -> Mapping[str, str]:
        """Return what this topic is configured with."""
        return _COMPACTED if name in self.compacted else self.config

    def lost(self, name: str, what: str) -> WalstreamError:
        """Return the error of a topic that is gone."""
        return (positions_lost if name in self.compacted else topic_lost)(name, what)

    def topic(self, name: str) -> NewTopic:
        """Return the request for a topic of this name."""
        return NewTopic(
            name,
            num_partitions=self.partitions_of(name) or -1,
            replication_factor=self.replication or -1,
            config=dict(self.config_of(name)),
        )


def create_topics(admin: AdminClient, creation: Creation, names: list[str]) -> None:
    """Create those that are not there; raise why one cannot be."""
    new = [creation.topic(name) for name in names]
    for part in in_parts(new, _AT_ONCE):
        asked = admin.create_topics(part, request_timeout=CREATED_TIMEOUT_S)
        for name, done in asked.items():
            _await_creation(admin, name, done)


def _await_creation(admin: AdminClient, name: str, done: "Future[None]") -> None:
    try:
        await_controller(admin, done, CREATED_TIMEOUT_S + 1)
    except TimeoutError as error:
        raise Transient(f"creating topic {name!r}: Kafka does not answer") from error
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise creation_error(name, error) from error
    else:
        _log.info("topic created", **{TOPIC: name})
