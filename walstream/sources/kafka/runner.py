"""A kafka source, as its worker runs it: one membership after the other."""

import structlog

from walstream.config import KafkaSinkConfig, KafkaSource
from walstream.config.tls import confined
from walstream.errors import ConfigError
from walstream.kafka.producer_config import queue_of, queue_within
from walstream.kafka.topic_metadata import Describer
from walstream.sources.context import SourceContext
from walstream.sources.figures import RELAY_FIGURES
from walstream.sources.kafka.lease import PartitionLease
from walstream.sources.kafka.metrics import (
    Lasting,
    RelayMetrics,
)
from walstream.sources.kafka.partition_producers import PartitionProducers
from walstream.sources.kafka.relay import Relay
from walstream.sources.kafka.relay_sink import RelaySink
from walstream.sources.kafka.source_topics import ReadTopics
from walstream.sources.report import RelayReport
from walstream.sources.routers import Routers
from walstream.telemetry.counts import SourceCounts

_log = structlog.get_logger()


class KafkaRunner:
    """Makes memberships of one group, and keeps what outlives them."""

    ended = False  # a chain has no end

    def __init__(self, context: SourceContext) -> None:
        config, name, positions = context.config, context.name, context.positions
        source = config.sources[name]
        if not isinstance(source, KafkaSource):
            raise ConfigError(f"source {name!r} is not a kafka source")
        self._name = name
        self._source = source
        self._memory = config.memory
        self._routers = Routers(config, name)
        self._positions = positions
        self._stop = context.stop
        kept = RELAY_FIGURES.read(positions)
        self._figures = RelayMetrics(kept, positions.write)
        dropped = self._figures.dropped
        leash = PartitionLease.of(source)
        self._lasting = {
            sink: Lasting(leash, dropped.get(sink, 0)) for sink in source.sinks
        }

    def run(self) -> bool:
        """Pass records on until a stop; False: its deadline cut the drain short."""
        configs = self._routers.configs
        queue = queue_within(self._memory, len(configs))
        outlets = [
            RelaySink(
                name,
                sink.model_copy(update={"producer": queue_of(sink.producer, queue)}),
                self._routers[name],
                self._positions,
                self._lasting[name],
                fenced=self._fenced(name, sink),
            )
            for name, sink in configs.items()
        ]
        for outlet in outlets:
            outlet.meter = self._figures.meter.sink(outlet.name)
        form = next(iter(configs.values())).format
        describer = Describer(self._source.consumer, confined(self._name, self._source))
        topics = ReadTopics(self._source, self._positions, describer)
        try:
            describer.look_around()
            return Relay(topics, form, outlets, self._figures, self._stop).run()
        finally:
            self._figures.write(now=True)

    def _fenced(self, name: str, sink: KafkaSinkConfig) -> PartitionProducers | None:
        """Return what writes a sink's records in transactions; None: it does not."""
        if not sink.is_transactional:
            return None
        topic = sink.positions_topic_of(self._name)
        return PartitionProducers(name, sink, self._source.group, topic)

    @property
    def flowed(self) -> bool:
        return self._figures.has_streamed

    @property
    def phase(self) -> str:
        if self._figures.streaming and self._figures.away:
            return "waiting"
        return "streaming" if self._figures.streaming else ""

    def say_drained(self, *, drained: bool) -> None:
        """Log how a stop went."""
        if drained:
            _log.info("drained")
        else:
            _log.warning(
                "stopped before everything was delivered: the rest is sent again"
            )

    def report(self) -> RelayReport:
        return self._figures.report()

    def counts(self) -> SourceCounts:
        return self._figures.counts()
