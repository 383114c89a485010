"""Advertised listeners: looked up before any record is sent to them.

A bootstrap server on this machine may name brokers elsewhere, and clients go there with
passwords and rows. Where nothing encrypts what they say, that is refused: as it is of
the bootstrap servers, which the configuration names.
"""

import socket
from collections.abc import Callable
from typing import Final

from confluent_kafka import KafkaError

from walstream.config.dsn import is_local
from walstream.config.librdkafka import ClientProperties
from walstream.config.tls import Confined, broker_addresses
from walstream.errors import ConfigError, Transient
from walstream.kafka.connection_errors import outage
from walstream.kafka.lent_login import log_in
from walstream.kafka.metadata import hosts
from walstream.telemetry.runtime import monotonic

_EVERY_S: Final = 60.0  # a broker may come later, or name itself anew
_CUT: Final = KafkaError._TRANSPORT  # noqa: SLF001 - librdkafka's local codes are spelt so


class BrokersElsewhere(ConfigError):
    """Brokers are off this machine, and the connection is not encrypted."""


class Whereabouts:
    """Check of the brokers' addresses before the first client, and later again."""

    def __init__(
        self,
        properties: ClientProperties,
        confined: Confined | None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """With properties as `client_properties` gave them; None: no look is needed."""
        self._properties = properties
        self._confined = confined
        self._clock = clock
        self._next = clock()

    def look(self, timeout_s: float) -> None:
        """Raise BrokersElsewhere, or the reason why no broker answers."""
        confined = self._confined
        if confined is None or self._clock() < self._next:
            return
        found = _asked(self._properties, confined, timeout_s)
        elsewhere = sorted({host for host in found if not is_local(host)})
        if elsewhere:
            raise _refusal(elsewhere, confined)
        self._next = self._clock() + _EVERY_S


def _asked(
    properties: ClientProperties, confined: Confined, timeout_s: float
) -> list[str]:
    """Return the first answer of the servers, asked one after the other."""
    failed: Transient | None = None
    for host, port in broker_addresses(properties):
        doing = f"connecting to {host}:{port}"
        try:
            with socket.create_connection((host, port), timeout_s) as connection:
                doing = f"asking {host}:{port} for its brokers"
                if confined.logs_in:
                    log_in(properties, connection, timeout_s)
                connection.settimeout(timeout_s)
                return hosts(connection)
        except OSError as error:
            failed = _away(doing, error)
        except Transient as error:
            failed = error
    raise failed or Transient("no bootstrap server is named")


def _away(doing: str, error: OSError) -> Transient:
    why = "timed out" if isinstance(error, TimeoutError) else error.strerror or error
    cause = outage(KafkaError(_CUT, f"{doing}: {why}"))
    return Transient(cause.why, hint=cause.hint)


def _refusal(elsewhere: list[str], confined: Confined) -> BrokersElsewhere:
    return BrokersElsewhere(
        f"{confined.owner}: brokers advertise themselves at {', '.join(elsewhere)},"
        f" which is not this machine, and {confined.protocol} is not encrypted",
        hint=f'write "ssl" or "sasl_ssl" as {confined.key}, or insecure = true in'
        f" {confined.owner}; or, if they are on this machine, localhost in the brokers'"
        " advertised.listeners",
    )
