"""Sources and sinks taken together: who feeds whom, and which topics they can reach.

Two sources in one topic of `op` records would mix two servers' LSNs, which then order
nothing. Which topics a source can reach is computed from patterns alone, before any
server is asked, and errs on the side of refusing: every table that a pattern could
match is taken to exist, and mappings and fallback are taken to be used.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final

from walstream.config import dsn
from walstream.config.problem import Problem
from walstream.config.sink import KafkaSink, PackageSink, RoutedSink, Sink
from walstream.config.source import (
    KafkaSource,
    PackageSource,
    PostgresSource,
    Source,
    SqlSource,
)
from walstream.config.tls import brokers

_OF_OPS: Final = (
    "key",
    "on_truncate",
    "split_key_updates",
    "on_too_large",
    "tombstones",
    "strict",
    "verbose",
)


@dataclass(frozen=True)
class Feed:
    """One source's stream into one Kafka sink, and the topics it can reach."""

    source: str
    sink: str
    writes_ops: bool
    brokers: frozenset[str]
    topics: frozenset[str]  # patterns with * and ?
    asides: frozenset[str]  # of those, what holds no ops

    def shares_cluster(self, other: "Feed") -> bool:
        return self.sink == other.sink or not self.brokers.isdisjoint(other.brokers)


def check_formats(
    sources: Mapping[str, Source], sinks: Mapping[str, Sink]
) -> Iterator[Problem]:
    """Each source feeds sinks whose format can hold its rows."""
    for name, source in sources.items():
        for sink_name in source.sinks:
            sink = sinks.get(sink_name)
            if isinstance(sink, PackageSink):
                yield from _check_package(name, source, sink_name, sink)
            elif isinstance(source, KafkaSource) and sink and sink.handlers:
                yield Problem(
                    ("sources", name, "sinks"),
                    f"sinks.{sink_name} has handlers: a kafka source passes records on"
                    " byte for byte, to a sink without",
                )
            elif sink and sink.strict and _backfills(source):
                yield Problem(
                    ("sources", name, "backfill"),
                    f"would send rows to sinks.{sink_name}, which is strict, side by "
                    "side: readers that keep one position pass over those with a lower "
                    'one; write "never", and once it runs: walstream backfill TABLE',
                )
            elif sink and isinstance(source, SqlSource) != (sink.format == "row"):
                yield Problem(
                    ("sources", name, "sinks"),
                    f'sinks.{sink_name} has format "{sink.format}": rows of a sql '
                    'source go to a sink with format "row", and only they do',
                )


def _backfills(source: Source) -> bool:
    """Tell whether Spark reads its rows, whose positions then come in any order."""
    return isinstance(source, PostgresSource) and source.backfill != "never"


def _check_package(
    name: str, source: Source, sink_name: str, sink: PackageSink
) -> Iterator[Problem]:
    """Rows that Spark's tasks read go to Kafka: they know no package's sink."""
    if isinstance(source, PostgresSource) and source.backfill != "never":
        yield Problem(
            ("sources", name, "backfill"),
            f'sinks.{sink_name} is of kind "{sink.kind}", which a package adds, and no '
            'backfill goes there: write "never"',
        )
    if isinstance(source, SqlSource | KafkaSource):
        yield Problem(
            ("sources", name, "sinks"),
            f'sinks.{sink_name} is of kind "{sink.kind}", which a package adds: it '
            "takes ops of a postgres source, or of a package's",
        )


def check_row_sink(name: str, sink: RoutedSink) -> Iterator[Problem]:
    """Keys that say nothing of polled rows stay as they are."""
    if sink.format != "row":
        return
    fields = type(sink).model_fields
    for key in _OF_OPS:
        if key in fields and getattr(sink, key) != fields[key].default:
            yield Problem(
                ("sinks", name, key),
                'says nothing of rows, and the sink has format "row": leave it out',
            )
    if sink.handlers:
        yield Problem(
            ("sinks", name, "handlers"),
            'take ops, and the sink has format "row": rows of a sql source go to a '
            "sink without handlers",
        )
    for table, mapped in sink.topics.items():
        if mapped.partition_key is not None:
            yield Problem(
                ("sinks", name, "topics", table, "partition_key"),
                "is of no use for polled rows, whose key is the table's primary_key: "
                "leave it out",
            )


def check_row_names(sources: Mapping[str, Source]) -> Iterator[Problem]:
    """No two sources' rows look alike: readers drop what comes again by their name."""
    polled = [(n, one) for n, one in sources.items() if isinstance(one, SqlSource)]
    for (first, one), (second, other) in combinations(polled, 2):
        name = other.name_in_records(second)
        shared = sorted(one.tables.keys() & other.tables.keys())
        if shared and one.name_in_records(first) == name:
            yield Problem(
                ("sources", second, "name"),
                f'"{name}" is the name in the records of sources.{first} too, which '
                f'polls a table "{shared[0]}" as well: give each its own',
            )


def check_slots(
    sources: Mapping[str, Source], environment: Mapping[str, str]
) -> Iterator[Problem]:
    """No slot of a server is read by two sources."""
    postgres = [
        (name, source, _servers(source, environment))
        for name, source in sources.items()
        if isinstance(source, PostgresSource)
    ]
    for (first, one, here), (second, other, there) in combinations(postgres, 2):
        if here.isdisjoint(there):
            continue
        if one.slot == other.slot:
            yield Problem(
                ("sources", second, "slot"),
                f'"{other.slot}" is the slot of sources.{first} on the same server: '
                "give each its own",
            )
        elif shared := sorted({*one.slots} & {*other.slots}):
            yield Problem(
                ("sources", second, "slot"),
                f'"{shared[0]}" would name a slot of sources.{first} too, of which a '
                "detached sink has a copy: give it another name",
            )
    for name, source, _ in postgres:
        if len(set(source.slots)) < len(source.slots):
            yield Problem(
                ("sources", name, "sinks"),
                "two of them would get a copy of the slot under one name, when they "
                "are detached: rename one",
            )


def check_topics(
    sources: Mapping[str, Source], sinks: Mapping[str, Sink]
) -> Iterator[Problem]:
    """No topic mixes the ops of two sources, and none is read back by its writer."""
    feeds = list(_feeds(sources, sinks))
    for one, other in combinations(feeds, 2):
        if one.source == other.source or not (one.writes_ops or other.writes_ops):
            continue
        if one.shares_cluster(other) and (topic := _shared_topic(one, other)):
            yield Problem(
                ("sources", other.source, "sinks"),
                f'through sinks.{other.sink} it can reach the topic "{topic}", which '
                f"sources.{one.source} can reach too, and the LSNs of two sources "
                "order nothing in one topic: write {source} in the sink's topic, or "
                "give each source a sink with topics of its own",
            )
    for feed in feeds:
        yield from _check_loop(feed, sources[feed.source])


def check_parking(
    sources: Mapping[str, Source], sinks: Mapping[str, Sink]
) -> Iterator[Problem]:
    """Keep what is no op out of topics of ops: their readers would not know it."""
    feeds = list(_feeds(sources, sinks))
    for name, sink in sinks.items():
        if not isinstance(sink, KafkaSink):
            continue
        own = [feed for feed in feeds if feed.sink == name]
        near = {
            topic
            for feed in feeds
            if any(feed.shares_cluster(one) for one in own)
            for topic in feed.topics - feed.asides
        }
        for key, aside in _asides(sink, own):
            if any(overlap(topic, aside) for topic in near):
                yield Problem(
                    ("sinks", name, key),
                    f'"{aside}" may be a topic of tables, too: name one that no table '
                    "goes to",
                )


def _asides(sink: KafkaSink, feeds: Iterable[Feed]) -> Iterator[tuple[str, str]]:
    """Give the topics of what is no op, with their keys."""
    if sink.on_too_large != "stop":
        yield "on_too_large", sink.on_too_large
    for topic in {sink.txinfo_topic(feed.source) for feed in feeds} - {""}:
        yield "txinfo", topic


def topics_of(
    sink: str, sources: Mapping[str, Source], sinks: Mapping[str, Sink]
) -> list[str]:
    """List the topics that a sink can reach, as names and patterns."""
    feeds = _feeds(sources, sinks)
    return sorted({topic for one in feeds if one.sink == sink for topic in one.topics})


def overlap(one: str, other: str) -> bool:
    """Tell whether some text matches both patterns."""
    if _is_wild(one) or _is_wild(other):
        return _overlap(one, other)
    return one == other


@lru_cache(maxsize=4096)
def _overlap(one: str, other: str) -> bool:
    """Go row by row: row[j] tells whether one text may match one[:i] and other[:j]."""
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


def _is_wild(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern


def _servers(
    source: PostgresSource, environment: Mapping[str, str]
) -> set[tuple[str, str]]:
    """Host and port, all names of this machine taken as one."""
    servers = dsn.servers(dsn.parse(source.dsn), environment)
    if servers is None:
        return {("service file", source.dsn)}
    return {
        ("this machine" if dsn.is_local(host) else host.lower(), port)
        for host, port in servers
    }


def _feeds(sources: Mapping[str, Source], sinks: Mapping[str, Sink]) -> Iterator[Feed]:
    for name, source in sources.items():
        for sink_name in source.sinks:
            sink = sinks.get(sink_name)
            if isinstance(sink, KafkaSink):
                yield Feed(
                    source=name,
                    sink=sink_name,
                    writes_ops=sink.format == "op",
                    brokers=brokers(sink.producer),
                    topics=frozenset(_topics(name, source, sink)),
                    asides=frozenset({sink.txinfo_topic(name)}),
                )


def _topics(name: str, source: Source, sink: KafkaSink) -> Iterator[str]:
    for pattern in _tables(name, source):
        for table, mapped in sink.topics.items():
            if overlap(pattern, table if "." in table else f"*.{table}"):
                yield mapped.name
        if sink.topic:
            yield from _fill(sink.topic.replace("{source}", name), pattern)
    if sink.fallback_topic:
        yield sink.fallback_topic
    if topic := sink.txinfo_topic(name):
        yield topic


def _tables(name: str, source: Source) -> list[str]:
    match source:
        case PostgresSource(tables=[]):
            return ["*"]  # whatever the publication holds
        case PostgresSource(tables=patterns):
            return patterns
        case SqlSource(tables=tables):
            # where no schema is written, the source's name stands for it
            return [table if "." in table else f"{name}.{table}" for table in tables]
        case KafkaSource() | PackageSource():
            return ["*"]  # whatever the records are of


def _fill(template: str, pattern: str) -> Iterator[str]:
    """Name the topics of matching tables; names hold dots, so each split counts."""
    template = template.replace("{schema}.{table}", "{both}")
    schema, dot, table = pattern.partition(".")
    splits = {("*", "*")} if _is_wild(schema) else set()
    while dot:
        splits.add((schema, table))
        if _is_wild(table):
            splits.add((f"{schema}.*", "*"))
        following, dot, table = table.partition(".")
        schema = f"{schema}.{following}"
    for schema, table in splits or {("*", "*")}:
        yield (
            template.replace("{both}", pattern)
            .replace("{schema}", schema)
            .replace("{table}", table)
        )


def _shared_topic(one: Feed, other: Feed) -> str:
    """Find a topic, or a pattern of topics, that both can reach."""
    for topic in sorted(one.topics & other.topics):
        return topic
    for here, there in ((one, other), (other, one)):
        for pattern in sorted(filter(_is_wild, here.topics)):
            for topic in sorted(there.topics):
                if overlap(pattern, topic):
                    return topic
    return ""


def _check_loop(feed: Feed, source: Source) -> Iterator[Problem]:
    if not isinstance(source, KafkaSource):
        return
    if feed.brokers.isdisjoint(brokers(source.consumer)):
        return
    for topic in source.topics:
        if any(overlap(topic, written) for written in feed.topics):
            yield Problem(
                ("sources", feed.source, "topics"),
                f'"{topic}" is also written by it, through sinks.{feed.sink} to the '
                "same brokers: it would read its own records for ever",
            )
