"""A source's sinks, composed as configured: routers, topics, producers."""

from collections.abc import Callable, Collection, Iterable
from contextlib import ExitStack
from functools import partial

import structlog

from walstream.config import Config
from walstream.config import KafkaSink as KafkaSinkConfig
from walstream.kafka import kept
from walstream.kafka.informing import InformingSink, Informs
from walstream.kafka.producer import client_properties
from walstream.kafka.sink import KafkaSink, SinkRules
from walstream.kafka.topics import Creation, Topic, Topics
from walstream.meter import Meter
from walstream.metrics import TOPIC
from walstream.options import Options
from walstream.ports import Positions
from walstream.postgres.catalog import TableFacts
from walstream.routers import Routers

_log = structlog.get_logger()


class SinkSet:
    """What a source's sinks are made of; `open` makes them, for one stream."""

    def __init__(
        self,
        config: Config,
        source: str,
        positions: Positions,
        options: Options,
        seen_topics: dict[str, set[str]],
    ) -> None:
        self.meter = Meter()  # counts what its sinks are given
        self._seen_topics = seen_topics
        self._positions = positions
        self._options = options
        self._routers = Routers(config, source)

    def partition_key(self, schema: str, table: str) -> tuple[str, ...]:
        """Collect the partition key columns of all sinks for a table."""
        return self._routers.partition_key(schema, table)

    def check(self, captured: Iterable[TableFacts]) -> None:
        """Refuse partition keys that some record could not have."""
        for _, problem in self._routers.problems(captured):
            raise problem

    def expect(self, schema: str, table: str) -> None:
        """Look at the topics of one more table from the start."""
        for name in self._routers.configs:
            topic = self._routers[name].topic(schema, table)
            if topic is not None:
                self._seen_topics.setdefault(name, set()).add(topic)

    def header(self, origin: str) -> bytes:
        """Say where records come from; `origin` is system_identifier/database."""
        epoch = (self._positions.read("epoch") or {}).get("number", 0)
        return f"{origin}/{epoch}".encode()

    @property
    def names(self) -> list[str]:
        """Those of the source, in the configuration's order."""
        return list(self._routers.configs)

    def open(
        self,
        origin: str,
        captured: Iterable[TableFacts],
        stack: ExitStack,
        *,
        names: Collection[str] | None = None,
    ) -> list[KafkaSink]:
        """Make the sinks, or those of `names`; `origin` is system_identifier/database.

        Each closes with `stack`, and looks at its topics before the first record.
        """
        header = self.header(origin)
        tables = list(captured)
        sinks = []
        for name, config in self._routers.configs.items():
            if names is not None and name not in names:
                continue
            router = self._routers[name]
            # a backlog may hold tables that are gone: their topics count for the limits
            seen = self._seen_topics.setdefault(name, set())
            topics = {router.topic(table.schema, table.name) for table in tables} | seen
            topics |= self._routers.beside(name)
            sink = self._maker(name)(
                SinkRules(
                    name=name,
                    format=config.format,
                    partitioner=config.partitioner,
                    on_truncate=config.on_truncate,
                    split_key_updates=config.split_key_updates,
                    source_header=header,
                    context=self._routers.context(name, origin),
                    strict=config.strict,
                    meter=self.meter.sink(name),
                ),
                router,
                self.topics(name),
                producer=config.producer,
                expected=sorted(topic for topic in topics if topic is not None),
            )
            stack.callback(sink.close)
            stack.callback(_note_topics, seen, sink)
            sinks.append(sink)
        return sinks

    def _maker(self, sink: str) -> Callable[..., KafkaSink]:
        config = self._routers.configs[sink]
        if config.txinfo == "none":
            return KafkaSink
        topic = next(iter(self._routers.beside(sink)), "")
        return partial(InformingSink, Informs(topic, config.txinfo_max_rows))

    def topics(self, sink: str) -> Topics:
        """Make what finds, or creates, and accepts a sink's topics."""
        config = self._routers.configs[sink]
        return Topics(
            client_properties(config.producer),
            creation(config),
            accept=self._accept(sink),
        )

    def _accept(self, sink: str) -> Callable[[Topic], None]:
        """Compare each topic with what was kept of it, before its first record."""

        def accept(topic: Topic) -> None:
            name = kept.document_name(sink, topic.name)
            found = kept.document(topic.partitions, topic.identity)
            before = self._positions.read(name)
            if before == found:
                return
            before = before or found
            what = kept.moved(found, before)
            if what and not self._options.accept_partitions:
                raise kept.partitions_changed(topic.name, what)
            if kept.created_again(found, before):
                _log.warning(f"topic {kept.CREATED_AGAIN}", **{TOPIC: topic.name})
            self._positions.write({name: found})

        return accept


def creation(config: KafkaSinkConfig) -> Creation:
    """Say how a sink's missing topics are created."""
    return Creation(
        allowed=config.create_topics,
        partitions=config.topic_partitions,
        replication=config.topic_replication,
        config={key: str(text) for key, text in config.topic_config.items()},
    )


def _note_topics(seen: set[str], sink: KafkaSink) -> None:
    seen.update(sink.topics)
