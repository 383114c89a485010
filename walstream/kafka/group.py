"""A consumer group as members and onlookers see it: properties, offsets, errors.

What is set here keeps the promises: offsets move only when they are told, and a jump
over what was deleted shows.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from walstream.config.librdkafka import ClientProperties, whole_number
from walstream.errors import (
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
    """What the group knows of a partition."""

    offset: int | None  # None: nothing was ever stored
    note: str = ""  # what its reader kept beside it


class GroupListener(Protocol):
    """Who reads the partitions. Called from within `GroupConsumer.poll` and `close`."""

    def begins(self, topic: str) -> str:
        """Note that the group knows no partition of a topic; may raise.

        Gives what is kept beside its first offsets.
        """

    def assigned(self, stored: Mapping[Partition, StoredOffset]) -> None:
        """Note that these are ours from now on; may raise."""

    def revoked(self, places: Collection[Partition]) -> None:
        """Let go of these: what was read of them is to be delivered and stored now."""

    def lost(self, places: Collection[Partition]) -> None:
        """Note that somebody else may have these already: nothing may be stored."""


def places(
    given: ClientProperties, group: str, topics: Iterable[str], timeout_s: float
) -> dict[Partition, GroupOffset]:
    """Ask how far a group is, in those topics that are there; nobody joins it."""
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
    """Return after how long a silent member loses its partitions.

    Where the broker times, and is not asked, it is taken to be no more than usual.
    """
    properties = upstream_properties(given, group)
    return whole_number(properties, "session.timeout.ms", _SESSION_TIMEOUT_MS)


def spelt(place: Partition) -> str:
    """Name a partition in a sentence."""
    return f"topic {place.topic!r} partition {place.number}"


def gap(
    given: ClientProperties, group: str, place: Partition, offset: int | None
) -> HistoryError:
    """Make the error of a group whose next record is not there."""
    at = f" {offset}" if offset is not None and offset >= 0 else ""
    return HistoryError(
        f"{spelt(place)}: the group's next offset{at} is not there: records were"
        " deleted before they were passed on, or the topic was made anew",
        hint="see that readers know; then let the group go on with the oldest record of"
        " that partition",
        repair=offset_repair(
            given, group, f"{place.topic}:{place.number}", "--to-earliest"
        ),
    )


def offset_repair(given: ClientProperties, group: str, where: str, to: str) -> Repair:
    """Make the command that sets a group's offsets, while nobody is in the group."""
    tools = Tools.of(given, str(given.get("bootstrap.servers", "")))
    return tools.offsets(group, where, to)


def reading_failure(error: KafkaError, doing: str) -> WalstreamError:
    """Make the error of one who reads: the hints of a sink are not for it."""
    if error.code() in LOGIN:
        return failure(error, doing)
    if error.code() in DENIED:
        return PermissionLacking(
            f"{doing}: {error.str()} ({error.name()})",
            hint="allow DESCRIBE and READ on the topics, and READ on the group, to the"
            " consumer's user; then: walstream run",
        )
    found = failure(error, doing)
    if isinstance(found, Transient):
        return found
    return Transient(str(found.args[0]), hint="walstream tries again by itself")
