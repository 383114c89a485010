"""A source's sinks, composed as configured: routers, topics, producers."""

from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from dataclasses import replace

import structlog

from walstream.config import (
    KafkaSinkConfig,
    LogSink,
    PackageSink,
    PackageSource,
    PostgresSource,
)
from walstream.config.sink import HandledSink as HandledConfig
from walstream.config.sink import RoutedSink
from walstream.config.tls import confined
from walstream.formats import DEBEZIUM, wants_facts
from walstream.formats.encodings import JSON
from walstream.kafka import stored_topic
from walstream.kafka.delivered_tails import DeliveredTails
from walstream.kafka.producer_config import client_properties, queue_of, queue_within
from walstream.kafka.registry.schema_ids import SchemaIds
from walstream.kafka.sink import KafkaSink
from walstream.kafka.stored_topic import StoredTopic
from walstream.kafka.topic import Topic
from walstream.kafka.topic_creation import Creation
from walstream.kafka.topics import Topics
from walstream.kafka.txinfo_sink import TxinfoSink
from walstream.pipeline.ports import NamedSink
from walstream.pipeline.sinks import plugin
from walstream.pipeline.sinks.dry_run import DrySink
from walstream.pipeline.sinks.handler import Batching, HandlerSink
from walstream.pipeline.sinks.wrapper import (
    VerboseSink,
)
from walstream.postgres.catalog import TableFacts
from walstream.records.encoding import FROZEN_AFTER_MS, SinkRules
from walstream.records.handlers import OUTBOX
from walstream.records.handlers.chain import NAMING, Chain, is_outbox
from walstream.sources.context import SourceContext
from walstream.sources.debezium_options import registry_of
from walstream.sources.delivered_topics import DeliveredTopics
from walstream.sources.epoch import epoch_of
from walstream.sources.handlers import (
    handler_problems,
    handler_specs,
    idle_patterns,
    max_topics,
)
from walstream.sources.registered_sinks import RegisteredSinks
from walstream.sources.routers import Routers
from walstream.telemetry.fields import SINK, TOPIC
from walstream.telemetry.meter import Meter

_log = structlog.get_logger()


class SinkSet:
    """Factory of a source's sinks; `open` makes them, for one stream."""

    def __init__(
        self,
        context: SourceContext,
        seen_topics: dict[str, set[str]],
        *,
        stopping: Callable[[], bool] = lambda: False,
        meter: Meter | None = None,
    ) -> None:
        """Make none yet; while `stopping`, no op waits for others."""
        self.meter = meter or Meter()  # counts what the sinks are given
        config, source = context.config, context.name
        found = config.sources[source]
        self._verbose = (
            isinstance(found, PostgresSource | PackageSource) and found.verbose
        )
        self._stopping = stopping
        self.frozen_after_ms = FROZEN_AFTER_MS  # see SinkRules
        self.delivered = DeliveredTopics(config, source, context.positions)
        self._seen_topics = seen_topics
        self._positions = context.positions
        self._options = context.options
        self._routers = Routers(config, source)
        self._configs = {name: config.sinks[name] for name in found.sinks}
        self.registered = RegisteredSinks()
        self._memory = config.memory // len(found.sinks)  # of each sink
        self._queue = queue_within(config.memory, len(found.sinks))

    def partition_key(self, schema: str, table: str) -> tuple[str, ...]:
        """Collect the partition key columns of all sinks for a table."""
        return self._routers.partition_key(schema, table)

    @property
    def want_facts(self) -> bool:
        """Return whether some sink's records hold what only the catalog says."""
        return any(
            wants_facts(one.format, one.encoding)
            or any(s.kind == OUTBOX for s in handler_specs(one))
            for one in self._routers.configs.values()
        )

    @property
    def want_messages(self) -> bool:
        """Return whether some sink takes logical messages."""
        return any(one.messages.prefixes for one in self._routers.configs.values())

    def check(self, captured: Iterable[TableFacts]) -> None:
        """Refuse partition keys that some record could not have.

        Log what of the handlers has no effect.
        """
        tables = list(captured)
        for _, problem in self._routers.problems(tables):
            raise problem
        for _, error in handler_problems(self._routers, tables):
            raise error
        for name, pattern, what in idle_patterns(self._routers, tables):
            _log.warning(
                f"pattern of a handler {what}", **{SINK: name}, pattern=pattern
            )

    def expect(self, schema: str, table: str) -> None:
        """Look at the topics of one more table from the start."""
        for name, config in self._routers.configs.items():
            topic = self._routers[name].topic(schema, table)
            outbox = is_outbox(handler_specs(config), f"{schema}.{table}")
            if topic is not None and not outbox:
                self._seen_topics.setdefault(name, set()).add(topic)

    def header(self, origin: str) -> bytes:
        """Return where records come from; `origin` is system_identifier/database."""
        return f"{origin}/{epoch_of(self._positions)}".encode()

    @property
    def names(self) -> list[str]:
        """Those of the source, in the configuration's order."""
        return list(self._configs)

    def open(
        self,
        origin: str,
        captured: Iterable[TableFacts],
        stack: ExitStack,
        *,
        names: Collection[str] | None = None,
        joins: bool = False,
    ) -> list[NamedSink]:
        """Make the sinks, or those of `names`; `origin` is system_identifier/database.

        One that `joins` others that are open says nothing for its source, and what it
        is sent was never sent before.

        Each closes with `stack`, and looks at its topics before the first record.
        """
        tables = list(captured)
        sinks = []
        for name, config in self._configs.items():
            if names is not None and name not in names:
                continue
            sink: NamedSink
            if isinstance(config, PackageSink):
                sink = plugin.make(
                    name, config.kind, config.options, self.meter.sink(name)
                )
            else:
                sink = self._make(name, config, origin, tables, joins=joins)
            stack.callback(sink.close)
            if isinstance(sink, KafkaSink):
                self.registered.add(sink, handler_specs(config))
                stack.callback(_note_topics, self._seen_topics[name], sink)
            sinks.append(self._equipped(sink, config))
        if self._verbose and sinks and not joins:
            sinks[0] = VerboseSink(sinks[0], {})  # which each op of the source goes to
        return sinks

    def _make(
        self,
        name: str,
        config: RoutedSink,
        origin: str,
        tables: Iterable[TableFacts],
        *,
        joins: bool,
    ) -> "KafkaSink | DrySink":
        router = self._routers[name]
        rules = SinkRules(
            name=name,
            format=config.format,
            partitioner="",
            on_truncate=config.on_truncate,
            split_key_updates=config.split_key_updates,
            source_header=self.header(origin),
            context=self._routers.context(name, origin),
            strict=config.strict,
            meter=self.meter.sink(name),
            frozen_after_ms=self.frozen_after_ms,
            max_named_topics=max_topics(config),
        )
        if isinstance(config, LogSink):
            return DrySink(rules, router, says=True, values=config.values)
        if not isinstance(config, KafkaSinkConfig):
            return DrySink(rules, router, says=False)
        # a backlog may hold tables that are gone: their topics count for the limits
        seen = self._seen_topics.setdefault(name, set())
        specs = handler_specs(config)
        topics = {
            router.topic(table.schema, table.name)
            for table in tables
            if not is_outbox(specs, table.full_name)
        }
        topics |= seen | self._routers.beside(name)
        found = self.topics(
            name, self.delivered.of(name, self.header(origin), joins=joins)
        )
        registry = registry_of(config)
        return _maker(config)(
            replace(
                rules,
                partitioner=config.partitioner,
                parking="" if config.on_too_large == "stop" else config.on_too_large,
                tombstones=config.tombstones,
                reserved=self._routers.reserved(name),
                txinfo=self._routers.txinfo(name),
                messages=self._routers.messages(name),
                heartbeat_s=config.debezium.heartbeat,
            ),
            router,
            found,
            producer=queue_of(config.producer, self._queue),
            expected=sorted(topic for topic in topics if topic is not None),
            transactions=self.delivered.transactions(
                name, self.header(origin), rules.meter, joins=joins
            ),
            ids=None
            if registry is None
            else SchemaIds(name, registry, self._positions, found.disown),
        )

    def _equipped(self, sink: NamedSink, config: HandledConfig) -> NamedSink:
        """Put in front of a sink what else was configured: nothing is the usual."""
        if config.handlers:
            batching = Batching(
                config.batch_rows, self._memory, config.batch_interval, self._stopping
            )
            several = getattr(config, "format", "op") not in NAMING
            chain = Chain(handler_specs(config), several=several)
            sink = HandlerSink(sink, chain, batching)
        if config.verbose:
            sink = VerboseSink(sink, {SINK: sink.name})
        return sink

    def written(
        self, sinks: Iterable[NamedSink], tables: Iterable[tuple[str, str]]
    ) -> None:
        """Note that Spark sent rows of these tables.

        A topic that is deleted behind that is a loss, and not of a table that is gone.
        """
        tables = list(tables)
        for sink in sinks:
            router, topics = self._routers[sink.name], sink.topics
            for schema, table in tables:
                topic = topics.get(router.topic(schema, table) or "")
                if topic is not None:
                    topic.written()

    def topics(self, sink: str, tails: DeliveredTails | None = None) -> Topics:
        """Make what finds, or creates, and accepts a sink's topics."""
        config = self._routers.configs[sink]
        return Topics(
            client_properties(config.producer),
            creation(config, self._routers.single(sink), self._routers.compacted(sink)),
            accept=self._accept(sink),
            met=lambda name: (
                stored_topic.document_of(sink, name).read(self._positions) is not None
            ),
            confined=confined(sink, config),
            tails=tails,
        )

    def _accept(self, sink: str) -> Callable[[Topic], None]:
        """Compare each topic with what was kept of it, before its first record."""
        single = self._routers.single(sink)

        def accept(topic: Topic) -> None:
            several = stored_topic.not_single(topic.partitions)
            if topic.name in single and several:
                raise stored_topic.several_partitions(sink, topic.name, several)
            document = stored_topic.document_of(sink, topic.name)
            before = document.read(self._positions)
            keys = self._routers.keys(sink, topic.name)
            found = StoredTopic(topic.partitions, topic.identity)
            found = stored_topic.laid_out(found, keys, before)
            topic.lay_out(found.layout)
            if before == found:
                return
            before = before or found
            what = stored_topic.moved(found, before)
            if what and not self._options.accept_partitions:
                raise stored_topic.partitions_changed(topic.name, what)
            if stored_topic.created_again(found, before):
                _log.warning(
                    f"topic {stored_topic.CREATED_AGAIN}", **{TOPIC: topic.name}
                )
            elif found.layout > before.layout:
                _log.warning(stored_topic.LAID_OUT, **{TOPIC: topic.name})
            self._positions.write(document.entry(found))

        return accept


def _maker(config: KafkaSinkConfig) -> type[KafkaSink]:
    if config.format in DEBEZIUM:
        from walstream.kafka.debezium_sink import (  # noqa: PLC0415 - few need it
            DebeziumSink,
        )

        return DebeziumSink
    if config.encoding != JSON:
        from walstream.kafka.framed_sink import FramedSink  # noqa: PLC0415 - likewise

        return FramedSink
    return KafkaSink if config.txinfo == "none" else TxinfoSink


def all_ready(sinks: Iterable[NamedSink]) -> bool:
    """Ask each sink, whatever another says."""
    return all([sink.ready() for sink in sinks])  # noqa: C419


def creation(
    config: KafkaSinkConfig,
    single: frozenset[str] = frozenset(),
    compacted: frozenset[str] = frozenset(),
) -> Creation:
    """Return how a sink's missing topics are created; `single`: with one partition."""
    return Creation(
        allowed=config.create_topics,
        partitions=config.topic_partitions,
        replication=config.topic_replication,
        config={key: str(text) for key, text in config.topic_config.items()},
        single=single,
        compacted=compacted,
    )


def _note_topics(seen: set[str], sink: KafkaSink) -> None:
    seen.update(sink.topics)
