"""Topics of a source whose records a stream may leave out, and by which rules."""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import orjson

from walstream import __version__
from walstream.config import Config, KafkaSinkConfig, PostgresSource
from walstream.config.reachable_topics import Feed, feeds, overlap
from walstream.formats import DEBEZIUM
from walstream.kafka import delivery_era
from walstream.kafka.delivered_tails import DeliveredTails, SinkTopics, StreamStart
from walstream.kafka.delivery_era import ERAS
from walstream.kafka.producer_config import client_properties
from walstream.lsn import Lsn
from walstream.pipeline.ports import NamedSink, StateStore

_NAMED: Final = frozenset({"op", *DEBEZIUM})
# one op or none becomes of one, under the same name; of others nobody knows
_PLAIN: Final = frozenset(
    {"passthrough", "drop_columns", "rename_columns", "mask", "filter", "outbox"}
)
_WHERE_IT_IS: Final = frozenset(
    {
        *("dsn", "password_command", "alarm_retained_wal", "alarm_spill"),
        *("detach_after", "heartbeat", "verbose", "retain", "sinks"),
    }
)
_HOW_IT_WRITES: Final = frozenset(
    {
        *("producer", "oauth", "insecure", "verbose", "on_failure"),
        *("batch_rows", "batch_interval", "create_topics", "topic_partitions"),
        *("topic_replication", "topic_config", "skip_delivered"),
    }
)
"""What may change without another record for any op."""


class DeliveredTopics:
    """Those of one source's sinks, for one stream."""

    def __init__(self, config: Config, source: str, positions: StateStore) -> None:
        self.start: StreamStart | None = None  # None: no stream is to begin
        self._name = source
        self._positions = positions
        self._looks: list[DeliveredTails] = []
        self._source = config.sources[source]
        self._sinks = config.sinks
        every = list(feeds(config.sources, config.sinks))
        self._others = {
            one.sink: [each for each in every if _meets(one, each)]
            for one in every
            if one.source == source
        }

    def begin(self, start: StreamStart) -> None:
        """Note where a stream begins; end the eras of sinks that it does not have.

        Others may write to their topics meanwhile.
        """
        self.start = start
        sinks = {name.partition("/")[0] for name in ERAS.keys(self._positions)}
        for sink in sinks.difference(self._source.sinks):
            self._end(sink)

    def of(self, sink: str, header: bytes, *, joins: bool) -> DeliveredTails | None:
        """Make what looks for the records that Kafka has; None: all are sent.

        `header` says of which history they are. What a sink is sent that `joins` others
        was never sent before.
        """
        config, start = self._sinks[sink], self.start
        if start is None or not isinstance(config, KafkaSinkConfig):
            return None
        if not self._tells(config):
            self._end(sink)
            return None
        if joins:
            start = replace(start, repeats=False)
        asides = {name for _, name in config.asides(self._name)} | {config.on_too_large}
        topics = SinkTopics(
            sink,
            self._rules(config, header),
            client_properties(config.producer),
            lambda name: name not in asides and self._is_alone(sink, name),
        )
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

    def _tells(self, config: KafkaSinkConfig) -> bool:
        """Return whether records tell their names, and lie in their order."""
        return (
            isinstance(self._source, PostgresSource)
            and config.skip_delivered
            and config.format in _NAMED
            and not config.at_most_once
            and all(handler.kind in _PLAIN for handler in config.handlers)
        )

    def _is_alone(self, sink: str, topic: str) -> bool:
        """Return whether no other sink writes to a topic, as far as can be known."""
        return not any(
            overlap(pattern, topic)
            for other in self._others[sink]
            for pattern in other.topics
        )

    def _rules(self, config: KafkaSinkConfig, header: bytes) -> object:
        """Return all that decides where a record goes, as JSON can hold it."""
        told = [
            self._source.model_dump(mode="json", exclude=set(_WHERE_IT_IS)),
            config.model_dump(mode="json", exclude=set(_HOW_IT_WRITES)),
        ]
        text = orjson.dumps(told)  # in its order, in which patterns are tried
        return [__version__, header.decode(), hashlib.sha256(text).hexdigest()]


def _meets(one: Feed, other: Feed) -> bool:
    same = one.source == other.source and one.sink == other.sink
    return not same and one.shares_cluster(other)
