"""Trouble of a group member: what ends it, and what it waits for."""

from collections.abc import Callable
from typing import Final

import structlog
from confluent_kafka import KafkaError, KafkaException

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Restart, Transient, WalstreamError
from walstream.kafka.certificate import CertificateProbe
from walstream.kafka.connection_errors import ConnectionErrors, lacks_token
from walstream.kafka.group import DENIED, gap, reading_failure
from walstream.kafka.group_errors import reading_trouble
from walstream.kafka.offsets import Partition
from walstream.telemetry.fields import TOPIC

_AWAY: Final = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - librdkafka's local code
_MISSING: Final = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - likewise
}
_OUT_OF_RANGE: Final = {
    KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 - likewise
    KafkaError.OFFSET_OUT_OF_RANGE,
}
_LEFT: Final = KafkaError._MAX_POLL_EXCEEDED  # noqa: SLF001 - likewise
_log = structlog.get_logger()


class MemberTrouble:
    """Errors, kept until the member asks: the client's callbacks raise nothing."""

    def __init__(self, given: ClientProperties, group: str) -> None:
        self._given = given
        self._group = group
        self._servers = str(given.get("bootstrap.servers", ""))
        self._hearing = ConnectionErrors(CertificateProbe(given))
        self._told: set[str] = set()  # topics that are missing
        self._is_away = False
        self.failure: WalstreamError | None = None  # for good, of this membership

    @property
    def away(self) -> str:
        """Reason why no broker answers, as far as known; "" if one does."""
        if not self._is_away:
            return ""
        found = self._hearing.outage
        why = f": {found.why}: {found.hint}" if found else ""
        return f"upstream Kafka at {self._servers} does not answer{why}"

    def end_outage(self) -> None:
        """Note that brokers answer."""
        self._is_away = False
        self._hearing.end()

    def fail(self, error: WalstreamError) -> None:
        """Keep the first error, or the first that no other try would cure."""
        if self.failure is None or (self.failure.retryable and not error.retryable):
            self.failure = error

    def guard(self, work: Callable[[], None]) -> None:
        """Keep what a callback raises: librdkafka's thread of calls must go on."""
        try:
            work()
        except WalstreamError as error:
            self.fail(error)
        except KafkaException as error:
            self.fail(reading_failure(error.args[0], "taking partitions"))

    def hear(self, error: KafkaError) -> None:
        """Note trouble that belongs to no record: an error_cb."""
        self._hearing.hear(error)
        if lacks_token(error):
            return  # it asks again by itself, and the last one may be good for long
        if error.code() in DENIED:
            self.fail(reading_failure(error, f"reading from {self._servers}"))
        elif error.fatal():
            self.fail(Transient(f"the consumer stopped: {error.str()}"))
        elif error.code() == _AWAY:
            self._is_away = True

    def meet(
        self, error: KafkaError, topic: str, number: int | None, offset: int | None
    ) -> None:
        """Note trouble with one topic or partition: it came in a record's place."""
        code = error.code()
        place = Partition(topic, number or 0)
        if code in _MISSING:
            if topic not in self._told:
                self._told.add(topic)
                _log.warning("upstream topic is missing: waiting", **{TOPIC: topic})
        elif code in _OUT_OF_RANGE:
            self.fail(gap(self._given, self._group, place, offset))
        elif code == _LEFT:
            self.fail(Restart(f"left the group: {error.str()}"))
        elif error.fatal() or code == _AWAY:
            self.hear(error)
        else:
            at = place if topic else None
            found = reading_trouble(error, self._group, at, offset)
            if found is not None:
                self.fail(found)
