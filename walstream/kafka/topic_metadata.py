"""Metadata of the topics that are read: partitions and topic id."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import AdminClient

from walstream.config.librdkafka import ClientProperties
from walstream.config.tls import Confined
from walstream.errors import LoginRefused, PermissionLacking, Transient
from walstream.kafka.admin_client import admin_client, await_controller
from walstream.kafka.advertised_listeners import Whereabouts
from walstream.kafka.certificate import CertificateProbe
from walstream.kafka.connection_errors import ConnectionErrors
from walstream.kafka.errors import failure
from walstream.kafka.producer_config import client_properties
from walstream.pipeline.outage import Outage

_TIMEOUT_S: Final = 10.0
_MISSING: Final = KafkaError.UNKNOWN_TOPIC_OR_PART
NO_IDENTITY: Final = str(Uuid(0, 0))  # of a broker that gives topics none
_LOGIN: Final = KafkaError._AUTHENTICATION  # noqa: SLF001 - librdkafka's own code


class Described(NamedTuple):
    partitions: int
    identity: str  # the broker's id of this very topic


class Describer:
    """Asks about topics with a consumer's properties."""

    def __init__(
        self,
        given: ClientProperties,
        confined: Confined | None = None,
        *,
        timeout_s: float = _TIMEOUT_S,
    ) -> None:
        self._given = client_properties(given)
        self._whereabouts = Whereabouts(self._given, confined)
        self._servers = str(given.get("bootstrap.servers", ""))
        self._timeout_s = timeout_s
        self._refused: KafkaError | None = None
        self._hearing = ConnectionErrors(CertificateProbe(given))
        self._admin: AdminClient | None = None

    def look_around(self) -> None:
        """See where the brokers are, before any client of theirs is made."""
        try:
            self._whereabouts.look(self._timeout_s)
        except Transient as error:
            raise self._away(Outage(str(error.args[0]), error.hint)) from error

    def _connected(self) -> AdminClient:
        if self._admin is None:
            self._admin = admin_client(
                self._given, self._hear, whose="consumer properties"
            )
        return self._admin

    def look(
        self, names: Iterable[str], timeout_s: float | None = None
    ) -> dict[str, Described]:
        """Return descriptions of those topics that exist."""
        timeout_s = timeout_s or self._timeout_s
        self.look_around()
        admin = self._connected()
        asked = admin.describe_topics(
            TopicCollection(sorted(names)), request_timeout=timeout_s
        )
        found = {}
        for name, answer in asked.items():
            try:
                topic = await_controller(admin, answer, timeout_s + 1)
            except KafkaException as error:
                if error.args[0].code() != _MISSING:
                    raise self._failure(error.args[0], name) from error
            except TimeoutError as error:
                raise self._unanswered() from error
            else:
                found[name] = Described(len(topic.partitions), str(topic.topic_id))
        return found

    def _failure(self, error: KafkaError, name: str) -> Exception:
        self._connected().poll(0)
        found = failure(self._refused or error, f"looking at topic {name!r}")
        if isinstance(found, LoginRefused):
            return found
        if isinstance(found, PermissionLacking):
            found.hint = (
                "grant the consumer's user DESCRIBE and READ on the topics, and READ "
                "on the group; then: walstream run"
            )
            return found
        return self._unanswered()

    def _unanswered(self) -> Transient:
        if (outage := self._hearing.outage) is not None:
            return self._away(outage)
        return Transient(
            f"upstream Kafka at {self._servers} does not answer",
            hint="check that the brokers run and that this machine can reach them",
        )

    def _away(self, outage: Outage) -> Transient:
        return Transient(
            f"upstream Kafka at {self._servers} does not answer: {outage.why}",
            hint=outage.hint,
        )

    def _hear(self, error: KafkaError) -> None:
        self._hearing.hear(error)
        if error.code() == _LOGIN:
            self._refused = error
