"""Sources and sinks taken together: who feeds whom, and which topics they can reach.

Two sources in one topic of `op` records would mix two servers' LSNs, which then order
nothing. `reachable_topics` says which topics those are, and errs on the side of
refusing.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Final

from walstream.config import dsn
from walstream.config.problem import Problem
from walstream.config.reachable_topics import (
    Feed,
    feeds,
    is_wild,
    overlap,
    shared_topic,
)
from walstream.config.sink import KafkaSinkConfig, PackageSink, RoutedSink, Sink
from walstream.config.source import (
    KafkaSource,
    PostgresSource,
    Source,
    SqlSource,
)
from walstream.config.tls import brokers

_SERVICE: Final = "service file"  # in place of a host: it names one
_OF_OPS: Final = (
    "key",
    "on_truncate",
    "split_key_updates",
    "on_too_large",
    "tombstones",
    "strict",
    "verbose",
)


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
                    f"sinks.{sink_name} has handlers: a kafka source relays records "
                    "byte for byte, to a sink without handlers",
                )
            elif sink and sink.strict and _backfills(source):
                yield Problem(
                    ("sources", name, "backfill"),
                    f"would send rows in parallel to sinks.{sink_name}, which is "
                    "strict: readers that keep one position skip those with a lower "
                    'one; write "never", and once it runs: walstream backfill TABLE',
                )
            elif sink and isinstance(source, SqlSource) != (sink.format == "row"):
                yield Problem(
                    ("sources", name, "sinks"),
                    f'sinks.{sink_name} has format "{sink.format}": rows of a sql '
                    'source go to a sink with format "row", and only they do',
                )


def _backfills(source: Source) -> bool:
    """Return whether Spark reads its rows, whose positions then come in any order."""
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
                'has no effect on rows, and the sink has format "row": leave it out',
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
                "has no effect on polled rows, whose key is the table's primary_key: "
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
        (name, source, servers_of(source, environment))
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


def check_publications(
    sources: Mapping[str, Source], environment: Mapping[str, str]
) -> Iterator[Problem]:
    """No publication is kept in order by two sources that want different tables.

    Each would be sent the tables of both, and take out what it excludes.
    """
    postgres = [
        (name, source, servers_of(source, environment))
        for name, source in sources.items()
        if isinstance(source, PostgresSource) and source.tables
    ]
    for (first, one, here), (second, other, there) in combinations(postgres, 2):
        if one.publication != other.publication or here.isdisjoint(there):
            continue
        names = {
            dsn.database(dsn.parse(each.dsn), environment) for each in (one, other)
        }
        if len(names) == 1 and _published(one) != _published(other):
            yield Problem(
                ("sources", second, "publication"),
                f'"{other.publication}" is the publication of sources.{first} of the '
                "same database too, which names other `tables`, `exclude` or "
                "`columns`: each would get the tables of both. Give it another name; "
                "if it has streamed already, then: walstream positions reset "
                f"{second}, since a slot does not read a publication that is newer",
            )


def _published(source: PostgresSource) -> tuple[object, ...]:
    """Return what a source makes of its publication."""
    columns = {name: set(listed) for name, listed in source.columns.items()}
    return set(source.tables), set(source.exclude), columns, source.generated


def check_topics(
    sources: Mapping[str, Source], sinks: Mapping[str, Sink]
) -> Iterator[Problem]:
    """No topic mixes the ops of two sources, and none is read back by its writer."""
    every = list(feeds(sources, sinks))
    for one, other in combinations(every, 2):
        if one.source == other.source or not (one.writes_ops or other.writes_ops):
            continue
        if one.shares_cluster(other) and (topic := shared_topic(one, other)):
            yield Problem(
                ("sources", other.source, "sinks"),
                f'through sinks.{other.sink} it can reach the topic "{topic}", which '
                f"sources.{one.source} can reach too, and in one topic the LSNs of "
                "two sources cannot be ordered: write {source} in the sink's topic, "
                "or give each source a sink with topics of its own",
            )
    for feed in every:
        yield from _check_loop(feed, sources[feed.source])
    yield from _check_sinks_of_one(every)


def _check_sinks_of_one(every: Iterable[Feed]) -> Iterator[Problem]:
    """No topic is written by two sinks of one source.

    Each keeps the commits' order, but not with the other. Who goes by positions, as the
    idempotent consumer and `skip_delivered` do, takes a lower one as a repeat.
    """
    for one, other in combinations(every, 2):
        if one.source != other.source or one.sink == other.sink:
            continue
        if not (one.names_ops or other.names_ops) or not one.shares_cluster(other):
            continue
        # not what some name would fit: of no table it is known to have it
        for topic in sorted(one.of_tables & other.of_tables)[:1]:
            yield Problem(
                ("sources", other.source, "sinks"),
                f'sinks.{one.sink} and sinks.{other.sink} can both reach the topic "'
                f'{topic}" of the same brokers: their records would mix out of the '
                "commits' order there, and readers leave out a lower position as a "
                "repeat. Send the tables of one topic through one sink, or give each "
                "sink topics of its own",
            )


def check_parking(
    sources: Mapping[str, Source], sinks: Mapping[str, Sink]
) -> Iterator[Problem]:
    """Yield problems of topics that mix ops with other records."""
    every = list(feeds(sources, sinks))
    for name, sink in sinks.items():
        if not isinstance(sink, KafkaSinkConfig):
            continue
        own = [feed for feed in every if feed.sink == name]
        near = {
            topic
            for feed in every
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


def _asides(sink: KafkaSinkConfig, feeds: Iterable[Feed]) -> Iterator[tuple[str, str]]:
    """Yield the topics of records that are not ops, with their keys."""
    if sink.on_too_large != "stop":
        yield "on_too_large", sink.on_too_large
    for feed in feeds:
        for option, topic in sink.asides(feed.source):
            if not is_wild(topic):  # topics by prefix give way to those of tables
                yield option, topic


def servers_of(
    source: PostgresSource, environment: Mapping[str, str]
) -> set[tuple[str, str]]:
    """Return host and port, all names of this machine taken as one."""
    servers = dsn.servers(dsn.parse(source.dsn), environment)
    if servers is None:
        return {(_SERVICE, source.dsn)}
    return {
        ("this machine" if dsn.is_local(host) else host.lower(), port)
        for host, port in servers
    }


def may_share_database(
    one: PostgresSource, other: PostgresSource, environment: Mapping[str, str]
) -> bool:
    """Return whether both are of one database, or nobody can tell."""
    here, there = (servers_of(source, environment) for source in (one, other))
    unknown = any(host == _SERVICE for host, _ in here | there)
    named = {dsn.database(dsn.parse(each.dsn), environment) for each in (one, other)}
    same = len(named) == 1 or "" in named
    return unknown or (same and not here.isdisjoint(there))


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
