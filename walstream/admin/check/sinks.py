"""Findings of `check` about sinks; brokers are asked once, for all sources."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from walstream.config import KafkaSinkConfig
from walstream.config.tls import confined
from walstream.finding import Finding
from walstream.kafka import checks
from walstream.kafka.checks import WantedSink
from walstream.kafka.cluster import Cluster
from walstream.kafka.producer_config import client_properties
from walstream.kafka.stored_topic import StoredTopic, of_sink
from walstream.sources.sinks import creation


@dataclass(frozen=True, slots=True)
class ExpectedRecords:
    """Facts about the records that would go to a sink."""

    topics: Collection[str]
    kept: Mapping[str, StoredTopic]  # what is known of topics, by `SINK/TOPIC`
    all_known: bool = True  # False: which tables there are cannot be told
    oldest_commit: float | None = None  # of what waits; unix seconds, about
    polled: bool = False  # they are rows of a sql source
    chained: bool = False  # they are records of a kafka source
    single: frozenset[str] = frozenset()  # topics that have one partition
    compacted: frozenset[str] = frozenset()  # those that keep the last of each key
    ids: str = ""  # with what its transactional ids begin, before a hyphen


class SinkChecks:
    """Looks at sinks; remembers their brokers."""

    def __init__(self) -> None:
        self._clusters: dict[str, Cluster] = {}

    def look(
        self, name: str, sink: KafkaSinkConfig, wanted: ExpectedRecords
    ) -> list[Finding]:
        """Return findings about brokers and topics; never raise WalstreamError."""
        kept = of_sink(wanted.kept, name)
        topics = {*wanted.topics, *(() if wanted.all_known else kept)}
        if name not in self._clusters:
            self._clusters[name] = Cluster(
                client_properties(sink.producer), confined(name, sink)
            )
        asked = WantedSink(
            name,
            sink.producer,
            creation(sink, wanted.single, wanted.compacted),
            sorted(topics),
            kept,
            oldest_commit=wanted.oldest_commit,
            polled=wanted.polled,
            chained=wanted.chained,
            transactions=f"{wanted.ids}-" if sink.is_transactional else "",
        )
        return checks.inspect(asked, self._clusters[name])
