"""Limits of topics, as far as their configurations may be read."""

from typing import Final

import structlog
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    ConfigResource,
    ResourceType,
)

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Transient
from walstream.kafka.errors import failure
from walstream.kafka.producer_config import largest_record
from walstream.kafka.request_limit import RequestLimit
from walstream.kafka.topic import Topic
from walstream.telemetry.fields import TOPIC

_TIMEOUT_S: Final = 10.0
_UNREADABLE: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}
_RAISE_OWN: Final = (
    "raise message.max.bytes among the sink's own producer properties, or leave it out"
)
DEFAULT_LIMIT: Final = 1048588  # the broker's message.max.bytes
_log = structlog.get_logger()


class TopicLimits:
    """Reads them, of topics and of the brokers."""

    def __init__(self, client: ClientProperties | None = None) -> None:
        """Take the producer's own message.max.bytes of `client`, where one is set."""
        given = client or {}
        self._requests = RequestLimit(str(given.get("client.id", "")))
        self._own = largest_record(given)
        self._told: set[str] = set()

    def read(self, admin: AdminClient, found: dict[str, Topic]) -> None:
        """Fill in what these topics take and keep; raise when no broker answers.

        Topics that the broker asked does not know, as another one did, are taken out.
        """
        if not found:
            return
        self._read_topics(admin, found)
        self._requests.look(admin)
        for topic in found.values():
            if topic.limit > self._requests.record:
                topic.limit = self._requests.record
                topic.advice = self._requests.advice
            if self._own is not None and topic.limit > self._own:
                topic.limit = self._own
                topic.advice = _RAISE_OWN

    def _read_topics(self, admin: AdminClient, found: dict[str, Topic]) -> None:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in found]
        asked = admin.describe_configs(resources, request_timeout=_TIMEOUT_S)
        for resource, answer in asked.items():
            try:
                config = answer.result(_TIMEOUT_S + 1)
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    del found[resource.name]
                    continue
                if code not in _UNREADABLE:
                    raise failure(error.args[0], "reading topics") from error
                self._tell_once(resource.name, error)
                continue
            except TimeoutError as error:
                raise Transient("Kafka does not answer") from error
            topic = found[resource.name]
            topic.limit = int(config["max.message.bytes"].value)
            topic.retention_ms = retention_ms(
                config["cleanup.policy"].value, config["retention.ms"].value
            )

    def _tell_once(self, name: str, error: Exception) -> None:
        if name not in self._told:
            self._told.add(name)
            _log.warning(
                "topic's configuration cannot be read: Kafka's defaults are assumed",
                **{TOPIC: name},
                error=str(error),
            )


def retention_ms(policy: str, retention: str) -> int:
    """Return how long a topic keeps records; -1 is for ever, also when compacted."""
    return int(retention) if "delete" in policy.split(",") else -1
