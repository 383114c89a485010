"""Topics of a source whose records a stream may leave out."""

from collections.abc import Iterable
from dataclasses import replace

import structlog

from walstream.config import Config, KafkaSinkConfig
from walstream.kafka import delivery_era
from walstream.kafka.delivered_tails import DeliveredTails, StreamStart
from walstream.kafka.delivery_era import ERAS
from walstream.lsn import Lsn, show
from walstream.pipeline.ports import NamedSink, StateStore
from walstream.sources.delivery_rules import DeliveryRules
from walstream.telemetry.fields import SINK

_log = structlog.get_logger()


class DeliveredTopics:
    """Those of one source's sinks, for one stream."""

    def __init__(self, config: Config, source: str, positions: StateStore) -> None:
        self.start: StreamStart | None = None  # None: no stream is to begin
        self._positions = positions
        self._looks: list[DeliveredTails] = []
        self._sinks = config.sinks
        self._own = config.sources[source].sinks
        self._rules = DeliveryRules(config, source)

    def begin(self, start: StreamStart) -> None:
        """Note where a stream begins; end the eras of sinks that it does not have.

        Others may write to their topics meanwhile.
        """
        self.start = start
        sinks = {name.partition("/")[0] for name in ERAS.keys(self._positions)}
        for sink in sinks.difference(self._own):
            self._end(sink)

    def of(self, sink: str, header: bytes, *, joins: bool) -> DeliveredTails | None:
        """Make what looks for the records that Kafka has; None: all are sent.

        `header` says of which history they are. What a sink is sent that `joins` others
        was never sent before.
        """
        start = self.start
        if start is None or not isinstance(self._sinks[sink], KafkaSinkConfig):
            return None
        if joins:
            start = replace(start, repeats=False)
        if why := self._rules.why_again(sink):
            self._end(sink)
            if start.repeats:
                _log.info(
                    f"what Kafka has beyond the position may come again: {why}",
                    **{SINK: sink},
                    begins=show(start.resume),
                )
            return None
        topics = self._rules.topics(sink, header)
        look = DeliveredTails(topics, self._positions, start)
        self._looks.append(look)
        return look

    def _end(self, sink: str) -> None:
        """End a sink's eras: what it sends now, it sends by rules of no era.

        Else its records counted where the configuration is that of before again.
        """
        over = delivery_era.ended(self._positions, sink)
        if over:
            self._positions.write(over)

    def end_at(self, sinks: Iterable[NamedSink], until: Lsn) -> None:
        """Leave out nothing by what was sent from this LSN on: the stream ends there.

        With NEVER it ends nowhere, and what is found from then on counts.
        """
        for look in self._looks:
            look.until = until
        for sink in sinks:
            for topic in sink.topics.values():
                topic.end_tails(until)
