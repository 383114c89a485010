"""Whether a topic is still the one that the state is about."""

import threading
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import (
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    OffsetSpec,
)

from consumer.error import TopicReplaced
from consumer.lane import Place
from consumer.schema import reset
from consumer.settings import admin_settings
from walstream.errors import Transient

_TIMEOUT_S: Final = 10.0
_ENDS: Final = (
    OffsetSpec.earliest(),  # type: ignore[no-untyped-call]  # theirs
    OffsetSpec.latest(),  # type: ignore[no-untyped-call]  # theirs
)
_UNKNOWN: Final = {
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001 - a local code of librdkafka
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}


class TopicGuard:
    """Asks the brokers, for the lanes of one consumer."""

    def __init__(self, settings: Mapping[str, Any], group: str) -> None:
        self._settings = admin_settings(settings)
        self._group = group
        self._admin: AdminClient | None = None
        self._opening = threading.Lock()

    def check(
        self, place: Place, offset: int | None, topic_id: str | None
    ) -> str | None:
        """Give the topic's id; raise TopicReplaced where `offset` cannot go on.

        Raises Transient while Kafka does not answer.
        """
        found = self._id(place.topic)
        if topic_id is not None and found is not None and topic_id != found:
            raise self._stop(place, "was deleted and created anew", offset)
        if offset is not None:
            low, high = self.bounds(place)
            if offset > high:
                raise self._stop(place, f"ends at {high} already", offset)
            if offset < low:
                raise self._stop(
                    place, f"begins at {low}: Kafka deleted unread records", offset
                )
        return found or topic_id

    def _stop(self, place: Place, fact: str, offset: int | None) -> TopicReplaced:
        return TopicReplaced(
            f"{place} {fact}, and group {self._group} was to go on at {offset}",
            hint="backfill the tables again, and let the group forget the topic;"
            " in the application's database:\n" + reset(self._group, place.topic).sql,
            repair=reset(self._group, place.topic),
        ).at(*place, -1 if offset is None else offset)

    def _connected(self) -> AdminClient:
        with self._opening:
            if self._admin is None:
                self._admin = AdminClient(self._settings)
            return self._admin

    def _id(self, topic: str) -> str | None:
        asked = self._connected().describe_topics(
            TopicCollection([topic]), request_timeout=_TIMEOUT_S
        )
        try:
            return str(asked[topic].result(_TIMEOUT_S + 1).topic_id)
        except KafkaException as error:
            if error.args[0].code() in _UNKNOWN:
                return None  # an old broker, or no right to ask
            raise Transient(f"asking for topic {topic!r}: {error.args[0]}") from error
        except TimeoutError as error:
            raise Transient("Kafka does not answer") from error

    def bounds(self, place: Place) -> tuple[int, int]:
        """Give the first offset that Kafka has, and the next one; raise Transient."""
        where = TopicPartition(*place)
        # not asked of the consumer: it answers nobody while it is polled
        asked = [
            self._connected().list_offsets({where: spec}, request_timeout=_TIMEOUT_S)
            for spec in _ENDS
        ]
        try:
            low, high = (one[where].result(_TIMEOUT_S + 1).offset for one in asked)
        except KafkaException as error:
            raise Transient(f"asking for {place}: {error.args[0]}") from error
        except TimeoutError as error:
            raise Transient("Kafka does not answer") from error
        return low, high
