"""Trouble of a producer that belongs to no record."""

import structlog

from walstream.config.librdkafka import ClientProperties
from walstream.kafka.certificate import CertificateProbe
from walstream.kafka.connection_errors import ConnectionErrors
from walstream.pipeline.outage import Outage
from walstream.telemetry.fields import SINK

_log = structlog.get_logger()


class ProducerTrouble:
    """Each cause is logged once, and its end."""

    def __init__(self, sink: str, properties: ClientProperties) -> None:
        self._sink = sink
        self._hearing = ConnectionErrors(CertificateProbe(properties), self._say)
        self.hear = self._hearing.hear

    def _say(self) -> None:
        event = "Kafka does not take records: they wait"
        self._hearing.log(event, **{SINK: self._sink})

    @property
    def is_on(self) -> bool:
        return bool(self._hearing)

    @property
    def outage(self) -> Outage | None:
        return self._hearing.outage

    def end(self) -> None:
        """Note that it is over, if there was any."""
        if not self.is_on:
            return
        self._hearing.end()
        _log.info("Kafka takes records again", **{SINK: self._sink})
