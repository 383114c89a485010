"""A consumer group, for members and observers: properties, offsets, errors.

What is set here keeps the promises: offsets move only when they are told, and a jump
over what was deleted shows.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from walstream.config.librdkafka import ClientProperties, whole_number
from walstream.errors import (
    RETRIED,
    HistoryError,
    PermissionLacking,
    Repair,
    Transient,
    WalstreamError,
)
from walstream.kafka.connection_errors import LOGIN
from walstream.kafka.errors import failure
from walstream.kafka.oauth_token import prepared
from walstream.kafka.offsets import GroupOffset, Partition
from walstream.kafka.topic_finding import Tools
from walstream.kafka.topic_reader import TopicReader

_SESSION_TIMEOUT_MS: Final = 10_000
_DEFAULTS: Final[ClientProperties] = {
    "client.id": "walstream",
    "partition.assignment.strategy": "cooperative-sticky",
    # after a crash its partitions are somebody else's within this time
    "session.timeout.ms": _SESSION_TIMEOUT_MS,
    "queued.max.messages.kbytes": 16 << 10,
    "fetch.max.bytes": 8 << 20,
    # a topic that is made later, or grows, is found within this time
    "topic.metadata.refresh.interval.ms": 10_000,
    "reconnect.backoff.max.ms": 1000,
    "log.connection.close": False,
}
_PROMISED: Final[ClientProperties] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "isolation.level": "read_committed",
    "enable.partition.eof": False,
    "auto.offset.reset": "error",  # a jump over what was deleted must show
}
DENIED: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError._AUTHENTICATION,  # noqa: SLF001 - librdkafka's local codes are spelt so
}


class StoredOffset(NamedTuple):
    """Stored offset of a group in one partition."""

    offset: int | None  # None: nothing was ever stored
    note: str = ""  # what its reader kept beside it


class GroupListener(Protocol):
    """Reader of the partitions. Called from within `GroupConsumer.poll` and `close`."""

    def begins(self, topic: str) -> str:
        """Return the metadata for a topic that is new to the group; may raise.

        Gives what is kept beside its first offsets.
        """

    def assigned(self, stored: Mapping[Partition, StoredOffset]) -> None:
        """Note that these partitions are assigned; may raise."""

    def revoked(self, places: Collection[Partition]) -> None:
        """Deliver and store what was read of these partitions: they are revoked."""

    def lost(self, places: Collection[Partition]) -> None:
        """Note that another member may have these already: nothing may be stored."""


def places(
    given: ClientProperties, group: str, topics: Iterable[str], timeout_s: float
) -> dict[Partition, GroupOffset]:
    """Return a group's offsets in existing topics, without joining it."""
    properties = {**given, "group.id": group}
    properties.pop("auto.offset.reset", None)
    with TopicReader(properties, timeout_s=timeout_s) as reader:
        existing = reader.topics()
        bounds = reader.bounds(topic for topic in topics if topic in existing)
    where = [TopicPartition(*place) for place in bounds]
    consumer = Consumer(
        {**prepared(upstream_properties(given, group)), "error_cb": _ignore},
        logger=logging.getLogger("librdkafka"),
    )
    try:
        answers = consumer.committed(where, timeout=timeout_s) if where else []
    except KafkaException as error:
        raise reading_failure(
            error.args[0], "asking for the group's offsets"
        ) from error
    finally:
        consumer.close()
    found = {}
    for one in answers:
        place = Partition(one.topic, one.partition)
        found[place] = GroupOffset(
            one.offset if one.offset >= 0 else None, bounds[place]
        )
    return found


def partitions(
    given: ClientProperties, group: str, topic: str, timeout_s: float
) -> list[int]:
    """Ask which partitions a topic has, by a client of its own; raise KafkaException.

    A member that asks from within its own callbacks is aborted at the next of them:
    that answer takes the state of its call (confluent-kafka, list_topics).
    """
    consumer = Consumer(
        {**prepared(upstream_properties(given, group)), "error_cb": _ignore},
        logger=logging.getLogger("librdkafka"),
    )
    try:
        return list(
            consumer.list_topics(topic, timeout=timeout_s).topics[topic].partitions
        )
    finally:
        consumer.close()


def _ignore(_: KafkaError) -> None:
    """Note what the answers tell too."""


def upstream_properties(given: ClientProperties, group: str) -> dict[str, object]:
    """Join defaults, the operator's properties, and what keeps the promises."""
    properties = {**_DEFAULTS, **given, **_PROMISED, "group.id": group}
    if properties.get("group.protocol") == "consumer":
        # the broker assigns and times: it refuses what a client says of that
        for key in ("partition.assignment.strategy", "session.timeout.ms"):
            if key not in given:
                properties.pop(key)
    return properties


def session_timeout_ms(given: ClientProperties, group: str) -> int:
    """Return the time after which a silent member loses its partitions.

    Where the broker times, and is not asked, it is taken to be no more than usual.
    """
    properties = upstream_properties(given, group)
    return whole_number(properties, "session.timeout.ms", _SESSION_TIMEOUT_MS)


def spelt(place: Partition) -> str:
    """Return a partition's name for a sentence."""
    return f"topic {place.topic!r} partition {place.number}"


def gap(
    given: ClientProperties, group: str, place: Partition, offset: int | None
) -> HistoryError:
    """Return the error of a group whose next record is gone."""
    at = f" {offset}" if offset is not None and offset >= 0 else ""
    return HistoryError(
        f"{spelt(place)}: the group's next offset{at} does not exist: records were "
        "deleted before they were relayed, or the topic was created again",
        hint="tell the readers; then let the group continue with the oldest record of "
        "that partition",
        repair=offset_repair(
            given, group, f"{place.topic}:{place.number}", "--to-earliest"
        ),
    )


def offset_repair(given: ClientProperties, group: str, where: str, to: str) -> Repair:
    """Return the command that sets a group's offsets while it has no members."""
    tools = Tools.of(given, str(given.get("bootstrap.servers", "")))
    return tools.offsets(group, where, to)


def reading_failure(error: KafkaError, doing: str) -> WalstreamError:
    """Return the error of a reader, without the hints that are for sinks."""
    if error.code() in LOGIN:
        return failure(error, doing)
    if error.code() in DENIED:
        return PermissionLacking(
            f"{doing}: {error.str()} ({error.name()})",
            hint="grant the consumer's user DESCRIBE and READ on the topics, and READ "
            "on the group; then: walstream run",
        )
    found = failure(error, doing)
    if isinstance(found, Transient):
        return found
    return Transient(str(found.args[0]), hint=RETRIED)
