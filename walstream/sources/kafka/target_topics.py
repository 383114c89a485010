"""The topics that one sink of a relay writes to.

A target topic has as many partitions as the topic that its records come from: it is
created so, and refused otherwise.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final

import structlog

from walstream.config import KafkaSinkConfig
from walstream.config.tls import confined
from walstream.errors import ConfigError, TopicLost, WalstreamError
from walstream.kafka import stored_topic
from walstream.kafka.producer_config import client_properties
from walstream.kafka.stored_topic import StoredTopic
from walstream.kafka.topic import Topic
from walstream.kafka.topic_finding import Tools
from walstream.kafka.topic_metadata import NO_IDENTITY
from walstream.kafka.topics import Topics
from walstream.pipeline.outage import Outage
from walstream.pipeline.ports import StateStore
from walstream.sources.sinks import creation
from walstream.telemetry import runtime
from walstream.telemetry.fields import TOPIC

_ONE: Final = 1
ANY: Final = 0  # partitions of a topic that takes records of several topics
_GROWN: Final = (
    "topic has another number of partitions now: records stay in theirs, and the next "
    "start stops unless the upstream topic has as many"
)
_REFRESH_S: Final = 60.0
_DOUBT_S: Final = 6 * 3600.0  # as TopicWatch does it
_log = structlog.get_logger()


class TargetTopics:
    """Finds and creates a sink's topics, by the partitions that they must have."""

    def __init__(
        self,
        name: str,
        config: KafkaSinkConfig,
        positions: StateStore,
        compacted: frozenset[str] = frozenset(),
    ) -> None:
        """Those that are `compacted` keep the last record of each key."""
        self._name = name
        self._config = config
        self._positions = positions
        self._compacted = compacted
        self._read: frozenset[str] = frozenset()  # ids of the source's topics
        self._by_partitions: dict[int, Topics] = {}
        self._next_refresh = runtime.monotonic() + _REFRESH_S
        self._next_doubt = runtime.monotonic() + _DOUBT_S

    @property
    def away(self) -> bool:
        """Return True if the brokers did not answer when they were asked last."""
        return any(topics.away for topics in self._by_partitions.values())

    @property
    def outages(self) -> list[Outage | None]:
        """Why brokers do not answer, as far as it is known; from any thread."""
        return [topics.outage for topics in list(self._by_partitions.values())]

    def find(self, name: str, partitions: int) -> Topic | None:
        """Return the topic; None: it is not known yet, ask again.

        Raises what makes it unusable.
        """
        topics = self._of(partitions)
        if not topics.have([name]):
            return None
        topic = topics.known[name]
        self._check_loop(topic)
        return topic

    def find_positions(self, name: str) -> Topic | None:
        """Return the topic of transactions' positions; None: ask again."""
        return self.find(name, _ONE)

    def keep_from(self, identities: Iterable[str]) -> None:
        """Take the ids of the topics that are read: none may be written to."""
        self._read = frozenset(identities) - {NO_IDENTITY, ""}
        for topics in self._by_partitions.values():
            for topic in list(topics.known.values()):
                self._check_loop(topic)

    @property
    def located(self) -> bool:
        """Return whether it is known where the brokers are; if not, it is asked.

        Raises what is wrong with where they are.
        """
        return self._of(ANY).have(())

    def ask(self) -> Future[None]:
        """Ask whether the brokers answer."""
        return self._of(ANY).ask()

    def narrowed(self, name: str) -> "Future[bool]":
        """Ask whether a topic takes less than when records were sent to it."""
        every = self._by_partitions.values()
        return next(one for one in every if name in one.known).narrowed(name)

    def look(self, fail: Callable[[WalstreamError], None]) -> None:
        """See once a minute whether the topics are still what they were.

        `fail` is called, in the thread that looked, with what was lost.
        """
        if runtime.monotonic() < self._next_refresh:
            return
        self._next_refresh = runtime.monotonic() + _REFRESH_S

        def refreshed(done: Future[Any]) -> None:
            error = None if done.cancelled() else done.exception()
            if isinstance(error, WalstreamError) and not error.retryable:
                fail(error)

        doubted = runtime.monotonic() >= self._next_doubt
        if doubted:
            self._next_doubt = runtime.monotonic() + _DOUBT_S
        for topics in self._by_partitions.values():
            for topic in topics.known.values() if doubted else ():
                topic.doubt()
            topics.refresh().add_done_callback(refreshed)

    def close(self) -> None:
        for topics in self._by_partitions.values():
            topics.close()

    @property
    def tools(self) -> Tools:
        """What a repair of a topic is written with."""
        producer = self._config.producer
        return Tools.of(producer, str(producer.get("bootstrap.servers", "")))

    def _check_loop(self, topic: Topic) -> None:
        if topic.identity in self._read:
            raise ConfigError(
                f"topic {topic.name!r} of sinks.{self._name} is one that the source "
                "reads: its records would come back for ever",
                hint="name another topic, with `topic` or in"
                f" [sinks.{self._name}.topics], or another cluster; then:"
                " walstream run",
            )

    def _of(self, partitions: int) -> Topics:
        """Return what finds, or creates, topics of so many partitions."""
        if partitions not in self._by_partitions:
            made = creation(self._config, compacted=self._compacted)
            if partitions != ANY:
                made = replace(made, partitions=partitions)
            self._by_partitions[partitions] = Topics(
                client_properties(self._config.producer),
                made,
                accept=self._accept(partitions),
                # aside goes what has no order
                grown="" if partitions == ANY else _GROWN,
                met=self._met,
                confined=confined(self._name, self._config),
            )
        return self._by_partitions[partitions]

    def _met(self, topic: str) -> bool:
        document = stored_topic.document_of(self._name, topic)
        return document.read(self._positions) is not None

    def _accept(self, partitions: int) -> Callable[[Topic], None]:
        """Compare each topic with what it has to be, before its first record."""

        def accept(topic: Topic) -> None:
            if partitions not in {ANY, topic.partitions}:
                raise self._other_count(topic, partitions)
            document = stored_topic.document_of(self._name, topic.name)
            found = StoredTopic(topic.partitions, topic.identity)
            before = document.read(self._positions)
            if before == found:
                return
            if stored_topic.created_again(found, before or found):
                _log.warning(
                    f"topic {stored_topic.CREATED_AGAIN}", **{TOPIC: topic.name}
                )
            self._positions.write(document.entry(found))

        return accept

    def _other_count(self, topic: Topic, partitions: int) -> TopicLost:
        """Return the error of a topic in which records would change their partition."""
        has = f"topic {topic.name!r} has {topic.partitions} partitions, and the topic"
        what = f"{has} that its records come from has {partitions}"
        if topic.partitions > partitions:
            return TopicLost(
                f"{what}: order and barriers would break",
                hint=f"name another topic for them in [sinks.{self._name}.topics], or "
                f"delete {topic.name!r}: walstream then creates it again",
            )
        return TopicLost(
            f"{what}: order and barriers would break",
            hint=f"give {topic.name!r} as many partitions, then: walstream run",
            repair=self.tools.grow(partitions).of_topic(topic.name),
        )
