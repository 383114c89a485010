"""The cluster as a producer's user sees it: brokers, topics, rights.

Only asks, and changes nothing. What the answers mean is `checks`' business. A cluster
that did not answer once is not asked again.
"""

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    ConfigResource,
    ResourceType,
)

from walstream.config.librdkafka import ClientProperties
from walstream.config.tls import Confined
from walstream.errors import RETRIED, LoginRefused, Transient, WalstreamError
from walstream.kafka.admin_client import admin_client, in_parts, look_for_controller
from walstream.kafka.advertised_listeners import Whereabouts
from walstream.kafka.certificate import CertificateProbe
from walstream.kafka.connection_errors import LOGIN, ConnectionErrors, lacks_token
from walstream.kafka.errors import creation_error, failure
from walstream.kafka.request_limit import of_broker, written
from walstream.kafka.topic_creation import Creation
from walstream.telemetry import runtime

_TIMEOUT_S: Final = 8.0
_GIVE_UP_S: Final = 3.0  # after the first refusal: another address may answer
_POLL_S: Final = 0.05
_AT_ONCE: Final = 500  # topics in one request
_READY: Final = KafkaError.TOPIC_ALREADY_EXISTS

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Brokers:
    """The brokers and their defaults for topics."""

    count: int
    partitions: int | None = None  # None: may not be read
    replicas: int | None = None
    request_bytes: int | None = None  # the smallest socket.request.max.bytes


@dataclass(frozen=True, slots=True)
class FoundTopic:
    name: str
    identity: str
    partitions: int
    replicas: int  # the fewest of any partition
    allowed: Collection[str] | None  # WRITE, DESCRIBE, ...; None: not told
    config: Mapping[str, str] | None  # None: may not be read


class Cluster:
    """The brokers behind a producer's properties."""

    def __init__(
        self, producer: ClientProperties, confined: Confined | None = None
    ) -> None:
        """Ask with `producer`, as `client_properties` gave it."""
        self._whereabouts = Whereabouts(producer, confined)
        self._properties = dict(producer)
        self._admin: AdminClient | None = None
        self._hearing = ConnectionErrors(CertificateProbe(producer))
        self._login_refused: KafkaError | None = None
        self._heard_at = 0.0
        self._brokers: Brokers | WalstreamError | None = None

    @property
    def address(self) -> str:
        """The bootstrap servers, as written."""
        properties = self._properties
        servers = properties.get("bootstrap.servers")
        return str(servers or properties.get("metadata.broker.list", ""))

    def brokers(self) -> Brokers:
        """Return the brokers; raise the reason if none answers."""
        if self._brokers is None:
            try:
                self._brokers = self._look()
            except WalstreamError as error:
                self._brokers = error
            except KafkaException as error:
                self._brokers = failure(error.args[0], "asking the brokers")
        if isinstance(self._brokers, WalstreamError):
            raise self._brokers
        return self._brokers

    def _look(self) -> Brokers:
        self._whereabouts.look(_TIMEOUT_S)
        asked = self._connected().describe_cluster(request_timeout=_TIMEOUT_S)
        nodes = self._wait(asked, "asking the brokers").nodes
        found = [self._broker(node.id) for node in nodes]
        limits = [of_broker(config) for config in found if config is not None]
        config = found[0]
        if config is None:
            return Brokers(len(nodes))
        return Brokers(
            len(nodes),
            int(config["num.partitions"]),
            int(config["default.replication.factor"]),
            min((limit for limit in limits if limit is not None), default=None),
        )

    def _broker(self, node: int) -> Mapping[str, str] | None:
        """Read one broker's configuration: a request may name no other."""
        resource = ConfigResource(ResourceType.BROKER, str(node))
        (config,) = self._configs([resource]).values()
        return config

    def topics(self, names: Iterable[str]) -> dict[str, FoundTopic | WalstreamError]:
        """Return existing topics, or the error of one that cannot be seen."""
        found: dict[str, FoundTopic | WalstreamError] = {}
        for part in in_parts(sorted(names), _AT_ONCE):
            found |= self._describe(part)
        return found

    def _describe(self, names: list[str]) -> dict[str, FoundTopic | WalstreamError]:
        asked = self._connected().describe_topics(
            TopicCollection(names),
            include_authorized_operations=True,
            request_timeout=_TIMEOUT_S,
        )
        configs = self._configs(
            [ConfigResource(ResourceType.TOPIC, name) for name in names]
        )
        found: dict[str, FoundTopic | WalstreamError] = {}
        for name, answer in asked.items():
            try:
                topic = self._wait(answer, f"topic {name!r}")
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    found[name] = failure(error.args[0], f"topic {name!r}")
                continue
            allowed = topic.authorized_operations
            found[name] = FoundTopic(
                name,
                identity=str(topic.topic_id),
                partitions=len(topic.partitions),
                replicas=min(
                    (len(one.replicas) for one in topic.partitions), default=0
                ),
                allowed=None if allowed is None else {one.name for one in allowed},
                config=configs[name],
            )
        return found

    def _configs(
        self, resources: list[ConfigResource]
    ) -> dict[str, Mapping[str, str] | None]:
        """Read configurations by name; None where that is not allowed, or not there."""
        asked = self._connected().describe_configs(
            resources, request_timeout=_TIMEOUT_S
        )
        found: dict[str, Mapping[str, str] | None] = {}
        for resource, answer in asked.items():
            try:
                entries = self._wait(answer, "reading configurations")
            except KafkaException:
                found[resource.name] = None
            else:
                found[resource.name] = written(entries)
        return found

    def refusals(
        self, names: Iterable[str], creation: Creation
    ) -> dict[str, WalstreamError]:
        """Return why topics could not be created: asked of the brokers, not done."""
        refused = {}
        for part in in_parts(sorted(names), _AT_ONCE):
            asked = self._connected().create_topics(
                [creation.topic(name) for name in part],
                validate_only=True,
                request_timeout=_TIMEOUT_S,
            )
            for name, answer in asked.items():
                try:
                    self._wait(answer, f"creating topic {name!r}")
                except KafkaException as error:
                    if error.args[0].code() != _READY:
                        refused[name] = creation_error(name, error)
        return refused

    def _connected(self) -> AdminClient:
        if self._admin is None:
            self._admin = admin_client(self._properties, self._hear)
        return self._admin

    def _hear(self, error: KafkaError) -> None:
        if not self._hearing:
            self._heard_at = runtime.monotonic()
        self._hearing.hear(error)
        if error.code() in LOGIN and not lacks_token(error):
            self._login_refused = error

    def _wait(self, answer: "Future[Answer]", doing: str) -> Answer:
        """Return an answer; raise early if every broker refuses."""
        deadline = runtime.monotonic() + _TIMEOUT_S
        while not answer.done():
            self._connected().poll(_POLL_S)
            now = runtime.monotonic()
            late = self._hearing and now > self._heard_at + _GIVE_UP_S
            if late and not self._login_refused:
                late = not look_for_controller(self._connected())
                if not late:  # it was of one broker alone
                    self._heard_at = runtime.monotonic()
            if now > deadline or (late and self._brokers is None):
                raise self._unanswered(doing)
        try:
            return answer.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError._TIMED_OUT:  # noqa: SLF001 - likewise
                raise self._unanswered(doing) from error
            raise

    def _unanswered(self, doing: str) -> WalstreamError:
        """Return the reason why no broker answers, as far as librdkafka knows."""
        found = self._hearing.outage
        if found is None:
            return Transient(f"{doing}: no answer", hint=RETRIED)
        kind = LoginRefused if self._login_refused else Transient
        return kind(f"{doing}: {found.why}", hint=found.hint)
