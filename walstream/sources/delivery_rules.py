"""Rules of one source's sinks: which of their records a stream may leave out."""

import hashlib
from typing import Final

import orjson

from walstream import __version__
from walstream.config import Config, KafkaSinkConfig, PostgresSource
from walstream.config.reachable_topics import Feed, feeds, overlap
from walstream.formats import DEBEZIUM
from walstream.formats.encodings import JSON
from walstream.formats.encodings.languages import LANGUAGES
from walstream.kafka.delivered_tails import SinkTopics
from walstream.kafka.producer_config import client_properties

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
_UNCOUNTED: Final[dict[str, set[str] | bool]] = {
    **dict.fromkeys(_HOW_IT_WRITES, True),
    "registry": {"client", "insecure"},
}
_MADE: Final = frozenset({"ts_ms", "ts_us", "ts_ns"})
_ALL: Final = 1 << 62


class DeliveryRules:
    """Those of one source, as it is configured."""

    def __init__(self, config: Config, source: str) -> None:
        self._name = source
        self._source = config.sources[source]
        self._sinks = config.sinks
        every = list(feeds(config.sources, config.sinks))
        self._own = {one.sink: one for one in every if one.source == source}
        self._others = {
            name: [each for each in every if _meets(one, each)]
            for name, one in self._own.items()
        }

    def why_unnamed(self, sink: str) -> str:
        """Return why records do not tell their names; "" where they do."""
        config = self._sinks[sink]
        if not isinstance(config, KafkaSinkConfig):
            return "it is not Kafka"
        if not isinstance(self._source, PostgresSource):
            return "only changes of PostgreSQL's WAL have names"
        if config.format not in _NAMED:
            return f"records of the format {config.format} do not tell their names"
        told = config.debezium
        if not told.position_header and (
            config.format == "debezium_row" or config.encoding != JSON
        ):
            return "position_header is false, and no field has the name of a change"
        for handler in config.handlers:
            if handler.kind not in _PLAIN:
                return f"nobody knows what the handler {handler.kind} makes of a change"
        return ""

    def why_again(self, sink: str) -> str:
        """Return why nothing of a sink is left out; "" where it may be."""
        config = self._sinks[sink]
        if why := self.why_unnamed(sink):
            return why
        assert isinstance(config, KafkaSinkConfig)  # noqa: S101 - else it has no names
        if config.at_most_once:
            return "at_most_once is true"
        return "" if config.skip_delivered else "skip_delivered is false"

    def topics(self, sink: str, header: bytes) -> SinkTopics:
        """Return the topics of a Kafka sink; `header` is what its records are of."""
        config = self._sinks[sink]
        if not isinstance(config, KafkaSinkConfig):
            raise TypeError(sink)
        asides = {name for _, name in config.asides(self._name)} | {config.on_too_large}
        return SinkTopics(
            sink,
            self._rules(config, header),
            client_properties(config.producer),
            lambda name: name not in asides and self.is_alone(sink, name),
            header.decode(),
            lambda name: not self._holds_events(sink, name),
            _ending(config),
        )

    def is_alone(self, sink: str, topic: str) -> bool:
        """Return whether no other sink writes to a topic, as far as can be known."""
        return not any(
            overlap(pattern, topic)
            for other in self._others[sink]
            for pattern in other.topics
        )

    def _holds_events(self, sink: str, topic: str) -> bool:
        return any(overlap(pattern, topic) for pattern in self._own[sink].asides)

    def _rules(self, config: KafkaSinkConfig, header: bytes) -> object:
        """Return all that decides where a record goes, as JSON can hold it."""
        told = [
            self._source.model_dump(mode="json", exclude=set(_WHERE_IT_IS)),
            config.model_dump(mode="json", exclude=_UNCOUNTED),
        ]
        text = orjson.dumps(told)  # in its order, in which patterns are tried
        return [__version__, header.decode(), hashlib.sha256(text).hexdigest()]


def _ending(config: KafkaSinkConfig) -> int:
    """Return how many bytes of a value's end say when the record was made.

    Where that may stand amid them, all: no value is compared. JSON's envelope is
    looked into.
    """
    if config.format == "debezium_row":
        added = {one.strip().partition(":")[0] for one in config.debezium.add_fields}
        return _ALL if added & _MADE else 0
    if config.format not in DEBEZIUM:
        return 0
    language = LANGUAGES.get(config.encoding)
    return language.ending if language is not None else 0


def _meets(one: Feed, other: Feed) -> bool:
    same = one.source == other.source and one.sink == other.sink
    return not same and one.shares_cluster(other)
