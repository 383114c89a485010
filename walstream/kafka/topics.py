"""Topics: what they are, creating the missing ones, noticing that one changed.

Asks brokers in a thread of its own: the streaming loop never waits for an answer.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import structlog
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from walstream.errors import ConfigError, TopicLost, Transient, WalstreamError
from walstream.kafka.failure import failure
from walstream.kafka.topic import Topic
from walstream.metrics import TOPIC

T = TypeVar("T")

_TIMEOUT_S: Final = 10.0
_ASK_S: Final = 3.0
_CREATED_TIMEOUT_S: Final = 30.0
_CREATED_AT_ONCE: Final = 100  # a controller takes 10,000 partitions in one request
_DESCRIBED_AT_ONCE: Final = 50  # 40 KB each, while the answers are looked at
_UNREADABLE: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}
_MISCONFIGURED: Final = {KafkaError.INVALID_CONFIG, KafkaError.INVALID_PARTITIONS}
_GROWN: Final = (
    "topic has other partitions now: keys stay where they are until"
    " walstream run --accept-partitions"
)
DEFAULT_LIMIT: Final = 1048588  # the broker's message.max.bytes
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Creation:
    """How to create a missing topic; `allowed` is False: it must be there."""

    allowed: bool
    partitions: int = 0  # 0: the broker's default
    replication: int = 0
    config: Mapping[str, str] = field(default_factory=dict)

    def topic(self, name: str) -> NewTopic:
        """Ask for a topic of this name."""
        return NewTopic(
            name,
            num_partitions=self.partitions or -1,
            replication_factor=self.replication or -1,
            config=dict(self.config),
        )


class Topics:
    """The topics that a sink writes to."""

    def __init__(
        self,
        client: Mapping[str, Any],
        creation: Creation,
        accept: Callable[[Topic], None],
        grown: str = _GROWN,
    ) -> None:
        """`accept` sees each topic before the first record; it may raise.

        `grown` is said of one that gets more partitions; "" says nothing.
        """
        self._client = dict(client)
        self._creation = creation
        self._accept = accept
        self._grown = grown
        self._admin: AdminClient | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="topics")
        self._known: dict[str, Topic] = {}
        self._asked: dict[frozenset[str], Future[None]] = {}
        self._retry_at = 0.0
        self._told: set[str] = set()
        self._login_refused: KafkaError | None = None

    @property
    def known(self) -> Mapping[str, Topic]:
        return self._known

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest max.message.bytes of all known topics."""
        limits = [topic.limit for topic in self._known.values()] or [DEFAULT_LIMIT]
        return min(limits), max(limits)

    @property
    def away(self) -> bool:
        """Tell whether the brokers did not answer when they were asked last."""
        return "unreachable" in self._told

    def have(self, names: Iterable[str]) -> bool:
        """Tell whether these are known; ask for the others, without waiting.

        Raises what makes a topic unusable; a broker that is away is asked again.
        """
        missing = frozenset(names).difference(self._known)
        if not missing:
            return True
        asked = self._asked.get(missing)
        if asked is None:
            if time.monotonic() >= self._retry_at:
                self._asked[missing] = self._thread.submit(self._find, missing)
            return False
        if not asked.done():
            return False
        del self._asked[missing]
        try:
            asked.result()
        except Transient as error:
            self._tell(str(error))
            self._retry_at = time.monotonic() + 1.0
            return False
        return True

    def _tell(self, what: str) -> None:
        if "unreachable" not in self._told:
            self._told.add("unreachable")
            _log.warning("waiting for Kafka", error=what)

    def _find(self, names: frozenset[str]) -> None:
        found = self._describe(names)
        missing = sorted(names - found.keys())
        if missing:
            self._create(missing)
            deadline = time.monotonic() + _CREATED_TIMEOUT_S
            while names - found.keys():
                if time.monotonic() > deadline:
                    raise Transient(f"topics {missing} were created but do not appear")
                time.sleep(0.05)
                found = self._describe(names)
        for topic in found.values():
            self._accept(topic)
        self._known.update(found)
        if "unreachable" in self._told:
            self._told.discard("unreachable")
            _log.info("Kafka answers")

    def _create(self, names: list[str]) -> None:
        creation = self._creation
        if not creation.allowed:
            raise TopicLost(
                f"topics {names} do not exist, and create_topics is false",
                hint="create them, or set create_topics = true; then: walstream run",
            )
        new = [creation.topic(name) for name in names]
        for part in in_parts(new, _CREATED_AT_ONCE):
            asked = self._connected().create_topics(
                part, request_timeout=_CREATED_TIMEOUT_S
            )
            for name, done in asked.items():
                _await_creation(name, done)

    def _connected(self) -> AdminClient:
        if self._admin is None:
            try:
                hearing: Any = {**self._client, "error_cb": self._hear}
                self._admin = AdminClient(
                    hearing, logger=logging.getLogger("librdkafka")
                )
            except KafkaException as error:
                raise ConfigError(
                    f"producer properties: {error.args[0].str()}",
                    hint="correct it: librdkafka's CONFIGURATION.md lists all",
                ) from error
        return self._admin

    def _hear(self, error: KafkaError) -> None:
        if error.code() == KafkaError._AUTHENTICATION:  # noqa: SLF001 - librdkafka's own
            self._login_refused = error

    def _failure(self, error: KafkaError, doing: str) -> WalstreamError:
        """Say what failed: a refused login is only heard of, a request times out."""
        self._connected().poll(0)
        return failure(self._login_refused or error, doing)

    def _describe(self, names: Iterable[str]) -> dict[str, Topic]:
        """Describe those of these topics that exist."""
        self._connected().poll(0)  # what is heard from here on counts
        self._login_refused = None
        found: dict[str, Topic] = {}
        for part in in_parts(sorted(names), _DESCRIBED_AT_ONCE):
            found |= self._describe_some(part)
        return found

    def _describe_some(self, names: list[str]) -> dict[str, Topic]:
        asked = self._connected().describe_topics(
            TopicCollection(names), request_timeout=_TIMEOUT_S
        )
        found = {}
        for name, answer in asked.items():
            try:
                description = answer.result(_TIMEOUT_S + 1)
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise self._failure(error.args[0], f"topic {name!r}") from error
            except TimeoutError as error:
                raise Transient("Kafka does not answer") from error
            found[name] = Topic(
                name,
                identity=str(description.topic_id),
                partitions=len(description.partitions),
                limit=DEFAULT_LIMIT,
            )
        self._read_configuration(found)
        return found

    def _read_configuration(self, found: dict[str, Topic]) -> None:
        if not found:
            return
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in found]
        asked = self._connected().describe_configs(
            resources, request_timeout=_TIMEOUT_S
        )
        for resource, answer in asked.items():
            try:
                config = answer.result(_TIMEOUT_S + 1)
            except KafkaException as error:
                if error.args[0].code() not in _UNREADABLE:
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

    def ask(self) -> Future[None]:
        """Ask whether the brokers answer; the future raises Transient if not."""
        return self._thread.submit(self._ask)

    def _ask(self) -> None:
        admin = self._connected()
        admin.poll(0)
        try:
            admin.describe_cluster(request_timeout=_ASK_S).result(_ASK_S + 1)
        except (KafkaException, TimeoutError) as error:
            raise Transient("Kafka does not answer") from error

    def refresh(self) -> Future[None]:
        """Look at the known topics again; the future raises what was lost."""
        return self._thread.submit(self._refresh)

    def _refresh(self) -> None:
        known = dict(self._known)
        found = self._describe(known)
        for name, before in known.items():
            now = found.get(name)
            if now is None or now.identity != before.identity:
                what = "was deleted" if now is None else "was deleted and created again"
                raise topic_lost(name, what)
            grown = now.partitions != before.partitions
            if grown and self._grown and name not in self._told:
                self._told.add(name)
                _log.warning(
                    self._grown,
                    **{TOPIC: name},
                    before=before.partitions,
                    now=now.partitions,
                )
            before.retention_ms = now.retention_ms
            before.limit = now.limit

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def in_parts(items: list[T], most: int) -> Iterator[list[T]]:
    """Cut into lists of so many: what one request asks for."""
    return (items[start : start + most] for start in range(0, len(items), most))


def retention_ms(policy: str, retention: str) -> int:
    """Tell how long a topic keeps records; -1 is for ever: compacting takes no time."""
    return int(retention) if "delete" in policy.split(",") else -1


def _await_creation(name: str, done: "Future[None]") -> None:
    try:
        done.result(_CREATED_TIMEOUT_S + 1)
    except TimeoutError as error:
        raise Transient(f"creating topic {name!r}: Kafka does not answer") from error
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise creation_error(name, error) from error
    else:
        _log.info("topic created", **{TOPIC: name})


def creation_error(name: str, error: KafkaException) -> WalstreamError:
    """Say why a topic cannot be created."""
    if error.args[0].code() in _MISCONFIGURED:
        return ConfigError(
            f"creating topic {name!r}: {error.args[0].str()}",
            hint="correct topic_config, topic_partitions or topic_replication",
        )
    return failure(error.args[0], f"creating topic {name!r}")


def topic_lost(name: str, what: str) -> WalstreamError:
    """Make the error of a topic whose records are gone."""
    return TopicLost(
        f"topic {name!r} {what}: what was delivered to it before is gone",
        hint="see that readers know; walstream run goes on with the new topic",
    )
