"""Check that a topic is still the one that the state describes."""

import logging
import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    OffsetSpec,
    TopicDescription,
)

from consumer.errors import TopicReplaced
from consumer.group.assigned_partition import Place
from consumer.group.settings import ClientProperties, admin_settings
from consumer.state.schema import reset
from walstream.errors import Repair, Transient
from walstream.telemetry import runtime

_TIMEOUT_S: Final = 10.0
_REFRESH_S: Final = 0.5
_CONTROLLER_S: Final = 1.0  # an answer takes no longer, or nobody was asked
_TROUBLE_S: Final = 0.5  # that the others take one's failure for their own
_ENDS: Final = (
    OffsetSpec.earliest(),  # type: ignore[no-untyped-call]  # theirs
    OffsetSpec.latest(),  # type: ignore[no-untyped-call]  # theirs
)
_UNKNOWN_BOUNDS: Final = (1, 0)
_UNKNOWN: Final = {
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001 - a local code of librdkafka
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}


@dataclass(slots=True)
class _Answer:
    """The brokers' last answer about a topic."""

    asked_at: float = -math.inf
    topic_id: str | None = None
    bounds: dict[Place, tuple[int, int]] = field(default_factory=dict)
    trouble: Transient | None = None


class TopicGuard:
    """Asks the brokers, for the lanes of one consumer.

    One question is for all lanes of its topic: with a thousand of them, a question each
    would take long.
    """

    def __init__(
        self,
        settings: ClientProperties,
        group: str,
        forget: Callable[[str], Repair] | None = None,
    ) -> None:
        """`forget` is how the group forgets a topic; by default one by partitions."""
        self._forget = forget or partial(reset, group)
        self._settings = admin_settings(settings)
        self._group = group
        self._admin: AdminClient | None = None
        self._opening = threading.Lock()
        self._asking = threading.Lock()
        self._places: dict[str, set[Place]] = {}
        self._answers: dict[str, _Answer] = {}

    def expect(self, place: Place) -> None:
        """Ask for this one, too, when another of its topic is asked for."""
        with self._opening:
            self._places.setdefault(place.topic, set()).add(place)

    def check(
        self, place: Place, offset: int | None, topic_id: str | None, since: float
    ) -> str | None:
        """Return the topic's id; raise TopicReplaced where `offset` cannot go on.

        An answer of after `since` will do. Raises Transient while Kafka does not
        answer.
        """
        found = self.check_id(place, offset, topic_id, since)
        answer = self._answer(place, since)
        if offset is not None:
            low, high = answer.bounds.get(place, _UNKNOWN_BOUNDS)
            if not low <= offset <= high:  # likewise
                low, high = self.bounds(place)
            if offset > high:
                raise self._stop(place, f"ends at {high}", offset)
            if offset < low:
                raise self._stop(
                    place, f"begins at {low}: Kafka deleted unread records", offset
                )
        return found or topic_id

    def check_id(
        self, place: Place, offset: int | None, topic_id: str | None, since: float
    ) -> str | None:
        """Check alone that it is the same topic, as `check` does."""
        found = self._answer(place, since).topic_id
        if topic_id is not None and found is not None and topic_id != found:
            found = self._id(place.topic)  # the row may be newer than the answer
            if found not in (None, topic_id):
                raise self._stop(place, "was deleted and created again", offset)
        return found

    def _answer(self, place: Place, since: float) -> _Answer:
        with self._asking:
            now = runtime.monotonic()
            answer = self._answers.get(place.topic, _Answer())
            if answer.trouble is not None and now - answer.asked_at < _TROUBLE_S:
                raise Transient(str(answer.trouble))
            if answer.trouble is None and answer.asked_at >= since:
                return answer
            answer = self._answers[place.topic] = _Answer(now)
            with self._opening:
                places = [*self._places.get(place.topic, ())]
            try:
                answer.topic_id = self._id(place.topic)
                answer.bounds = self._bounds_of(places)
            except Transient as error:
                answer.trouble, answer.asked_at = error, runtime.monotonic()
                raise
            return answer

    def _refresh(self) -> None:
        """Learn the leaders again: librdkafka goes by a former one for minutes."""
        with suppress(KafkaException):
            self._connected().list_topics(timeout=_REFRESH_S)

    def _stop(self, place: Place, fact: str, offset: int | None) -> TopicReplaced:
        return TopicReplaced(
            f"{place} {fact}, but group {self._group} would continue at {offset}",
            hint="backfill the tables again, and make the group forget the topic;"
            " in the application's database:\n" + self._forget(place.topic).sql,
            repair=self._forget(place.topic),
        ).at(*place, -1 if offset is None else offset)

    def _connected(self) -> AdminClient:
        with self._opening:
            if self._admin is None:
                self._admin = AdminClient(
                    self._settings,  # type: ignore[arg-type]  # callbacks, undeclared
                    logger=logging.getLogger("consumer.librdkafka"),
                )
            return self._admin

    def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has; raise Transient."""
        try:
            found = self._connected().list_topics(topic, timeout=_TIMEOUT_S)
        except KafkaException as error:
            raise Transient(f"asking for topic {topic!r}: {error.args[0]}") from error
        if count := len(found.topics[topic].partitions):
            return count
        raise Transient(f"asking for topic {topic!r}: Kafka reports no partitions")

    def begins(
        self, topic: str, *, latest: bool
    ) -> tuple[dict[int, tuple[int, int]], str | None]:
        """Return where a group begins and ends by partition, and the topic's id.

        From the latest on, it goes on where it is in Kafka, if it is. Raises Transient.
        """
        topic_id = self._id(topic)
        places = [Place(topic, number) for number in range(self.partitions(topic))]
        bounds = self._bounds_of(places)
        if missing := [place for place in places if place not in bounds]:
            raise Transient(f"asking for {missing[0]}: Kafka reports no offsets")
        stored = self._stored(topic) if latest else {}
        found = {}
        for place, (low, high) in bounds.items():
            begin = stored.get(place.partition, high) if latest else low
            found[place.partition] = min(max(low, begin), high), high
        return found, topic_id

    def _stored(self, topic: str) -> dict[int, int]:
        """Return the group's offsets in Kafka, where it has some; raise Transient."""
        asked = self._connected().list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(self._group)], request_timeout=_TIMEOUT_S
        )
        try:
            found = asked[self._group].result(_TIMEOUT_S + 1).topic_partitions or []
        except KafkaException as error:
            raise Transient(
                f"asking for group {self._group}: {error.args[0]}"
            ) from error
        except TimeoutError as error:
            raise Transient("Kafka does not answer") from error
        return {
            one.partition: one.offset
            for one in found
            if one.topic == topic and one.error is None and one.offset >= 0
        }

    def _id(self, topic: str) -> str | None:
        asked = self._connected().describe_topics(
            TopicCollection([topic]), request_timeout=_TIMEOUT_S
        )
        try:
            return str(self._wait(asked[topic]).topic_id)
        except KafkaException as error:
            if error.args[0].code() in _UNKNOWN:
                return None  # an old broker, or no right to ask
            raise Transient(f"asking for topic {topic!r}: {error.args[0]}") from error
        except TimeoutError as error:
            raise Transient("Kafka does not answer") from error

    def _wait(self, answer: "Future[TopicDescription]") -> TopicDescription:
        """Return the controller's answer; look again who that is while none comes.

        It may have died some seconds ago, and librdkafka would ask nobody else.
        """
        for _ in range(round(_TIMEOUT_S / _CONTROLLER_S)):
            with suppress(TimeoutError):
                return answer.result(_CONTROLLER_S)
            self._refresh()
        return answer.result(_CONTROLLER_S)

    def bounds(self, place: Place) -> tuple[int, int]:
        """Return the first offset that Kafka has, and the next one; raise Transient."""
        found = self._bounds_of([place]).get(place)
        if found is None:
            raise Transient(f"asking for {place}: Kafka reports no offsets")
        return found

    def _bounds_of(self, places: Sequence[Place]) -> dict[Place, tuple[int, int]]:
        """Return the bounds that Kafka tells; raise Transient where it tells none."""
        if not places:
            return {}
        where = {place: TopicPartition(*place) for place in places}
        # not asked of the consumer: it answers nobody while it is polled
        asked = [
            self._connected().list_offsets(
                dict.fromkeys(where.values(), spec), request_timeout=_TIMEOUT_S
            )
            for spec in _ENDS
        ]
        found, refused = {}, None
        deadline = runtime.monotonic() + _TIMEOUT_S + 1
        for place, one in where.items():
            try:
                low, high = (
                    answer[one].result(max(0.0, deadline - runtime.monotonic())).offset
                    for answer in asked
                )
            except KafkaException as error:
                refused = Transient(f"asking for {place}: {error.args[0]}")
            except TimeoutError as error:
                raise Transient("Kafka does not answer") from error
            else:
                if min(low, high) < 0:  # librdkafka's answer where no broker gave one
                    refused = Transient(f"asking for {place}: no broker answers")
                    continue
                found[place] = (low, high)
        if refused is not None:
            self._refresh()
        if refused is not None and not found:
            raise refused
        return found
