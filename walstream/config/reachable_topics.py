"""Topics that a source can reach through a sink, computed from patterns alone.

No server is asked, and every doubt counts as a topic: every table that a pattern could
match is taken to exist, and mappings and fallback are taken to be used.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from walstream.config.handler import OutboxHandler
from walstream.config.sink import KafkaSinkConfig, Sink
from walstream.config.source import (
    KafkaSource,
    PackageSource,
    PostgresSource,
    Source,
    SqlSource,
)
from walstream.config.tls import brokers


@dataclass(frozen=True)
class Feed:
    """One source's stream into one Kafka sink, and the topics it can reach."""

    source: str
    sink: str
    writes_ops: bool
    names_ops: bool  # do readers, and the sink itself, go by their positions
    brokers: frozenset[str]
    topics: frozenset[str]  # patterns with * and ?
    asides: frozenset[str]  # of those, what holds no ops
    named: frozenset[str]  # of tables that are named in the map of a sink of the source

    @property
    def of_tables(self) -> frozenset[str]:
        """Return what holds ops of tables: patterns, and names."""
        return (self.topics - self.asides) | self.named

    def shares_cluster(self, other: "Feed") -> bool:
        return self.sink == other.sink or not self.brokers.isdisjoint(other.brokers)


def feeds(sources: Mapping[str, Source], sinks: Mapping[str, Sink]) -> Iterator[Feed]:
    """Yield each source's stream into each of its Kafka sinks."""
    for name, source in sources.items():
        for sink_name in source.sinks:
            sink = sinks.get(sink_name)
            if isinstance(sink, KafkaSinkConfig):
                yield Feed(
                    source=name,
                    sink=sink_name,
                    writes_ops=sink.format == "op",
                    names_ops=_names_ops(sink),
                    named=frozenset(_named(name, source, sink, sinks)),
                    brokers=brokers(sink.producer),
                    topics=frozenset(_topics(name, source, sink)),
                    asides=frozenset(
                        (*(topic for _, topic in sink.asides(name)), *_events(sink))
                    ),
                )


def topics_of(
    sink: str, sources: Mapping[str, Source], sinks: Mapping[str, Sink]
) -> list[str]:
    """Return the topics that a sink can reach, as names and patterns."""
    return sorted(
        {
            topic
            for feed in feeds(sources, sinks)
            if feed.sink == sink
            for topic in feed.topics
        }
    )


def shared_topic(one: Feed, other: Feed) -> str:
    """Return a topic, or a pattern of topics, that both can reach; "" if none."""
    for topic in sorted(one.topics & other.topics):
        return topic
    for here, there in ((one, other), (other, one)):
        for pattern in sorted(filter(is_wild, here.topics)):
            for topic in sorted(there.topics):
                if overlap(pattern, topic):
                    return topic
    return ""


def overlap(one: str, other: str) -> bool:
    """Return True if some text matches both patterns."""
    if is_wild(one) or is_wild(other):
        return _overlap(one, other)
    return one == other


@lru_cache(maxsize=4096)
def _overlap(one: str, other: str) -> bool:
    """Go row by row: row[j] says whether a text may match one[:i] and other[:j]."""
    row = [True]
    for right in other:
        row.append(row[-1] and right == "*")
    for left in one:
        above, row = row, [row[0] and left == "*"]
        for j, right in enumerate(other):
            if "*" in {left, right}:  # it takes nothing, or one character more
                row.append(above[j + 1] or row[j])
            else:
                row.append(above[j] and (left == right or "?" in {left, right}))
    return row[-1]


def is_wild(pattern: str) -> bool:
    """Return whether it has a wildcard."""
    return "*" in pattern or "?" in pattern


def _names_ops(sink: KafkaSinkConfig) -> bool:
    debezium = sink.debezium
    return sink.format == "op" or (
        sink.format == "debezium"
        and (debezium.position_header or debezium.transaction_block)
    )


def _named(
    name: str, source: Source, sink: KafkaSinkConfig, sinks: Mapping[str, Sink]
) -> Iterator[str]:
    """Yield where a sink sends tables that it, or another one of the source, names."""
    found = [sinks[one] for one in source.sinks if one in sinks]
    maps = [one.topics for one in found if isinstance(one, KafkaSinkConfig)]
    for table in {table for tables in maps for table in tables}:
        if "." not in table or is_wild(table):
            continue
        if not any(overlap(one, table) for one in _tables(name, source)):
            continue
        if (mapped := sink.topics.get(table)) is not None:
            yield mapped.name
        elif sink.topic:
            schema, _, bare = table.partition(".")
            topic = sink.topic.replace("{source}", name).replace("{schema}", schema)
            yield topic.replace("{table}", bare)


def _topics(name: str, source: Source, sink: KafkaSinkConfig) -> Iterator[str]:
    for pattern in _tables(name, source):
        for table, mapped in sink.topics.items():
            if overlap(pattern, table if "." in table else f"*.{table}"):
                yield mapped.name
        if sink.topic:
            yield from _fill(sink.topic.replace("{source}", name), pattern)
    if sink.fallback_topic:
        yield sink.fallback_topic
    for _, topic in sink.asides(name):
        yield topic
    yield from _events(sink)


def _events(sink: KafkaSinkConfig) -> Iterator[str]:
    """Yield the topics of its outboxes' records."""
    for handler in sink.handlers:
        if isinstance(handler, OutboxHandler):
            yield handler.topic.replace("{value}", "*")


def _tables(name: str, source: Source) -> list[str]:
    match source:
        case PostgresSource(tables=[]):
            return ["*.*"]  # whatever the publication holds
        case PostgresSource(tables=patterns):
            return patterns
        case SqlSource(tables=tables):
            # where no schema is written, the source's name stands for it
            return [table if "." in table else f"{name}.{table}" for table in tables]
        case KafkaSource() | PackageSource():
            return ["*"]  # whatever the records are of


def _fill(template: str, pattern: str) -> Iterator[str]:
    """Yield the topics of matching tables; names hold dots, so each split counts."""
    template = template.replace("{schema}.{table}", "{both}")
    schema, dot, table = pattern.partition(".")
    splits = {("*", "*")} if is_wild(schema) else set()
    while dot:
        splits.add((schema, table))
        if is_wild(table):
            splits.add((f"{schema}.*", "*"))
        following, dot, table = table.partition(".")
        schema = f"{schema}.{following}"
    for schema, table in splits or {("*", "*")}:
        yield (
            template.replace("{both}", pattern)
            .replace("{schema}", schema)
            .replace("{table}", table)
        )
