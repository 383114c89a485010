"""A source's sinks, composed as configured: routers, topics, producers."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack

import structlog

from walstream.config import Config
from walstream.config import KafkaSink as KafkaSinkConfig
from walstream.errors import ConfigError, TopicLost
from walstream.kafka.producer import client_properties
from walstream.kafka.sink import KafkaSink, SinkRules
from walstream.kafka.topics import Creation, Topic, Topics
from walstream.metrics import TOPIC
from walstream.options import Options
from walstream.ports import Positions
from walstream.postgres.catalog import TableFacts
from walstream.routing import Router, Rules, TopicMapping

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
        self._seen_topics = seen_topics
        self._positions = positions
        self._options = options
        self._configs = {
            name: found
            for name in config.sources[source].sinks
            if isinstance(found := config.sinks[name], KafkaSinkConfig)
        }
        self._routers = {
            name: Router(source, _rules(found)) for name, found in self._configs.items()
        }

    def partition_key(self, schema: str, table: str) -> tuple[str, ...]:
        """Collect the partition key columns of all sinks for a table."""
        mappings = [router.mapping(schema, table) for router in self._routers.values()]
        return tuple(
            sorted(
                {
                    column
                    for mapping in mappings
                    if mapping
                    for column in mapping.partition_key or ()
                }
            )
        )

    def check(self, captured: Iterable[TableFacts]) -> None:
        """Refuse partition keys that some record could not have."""
        for table in captured:
            for column in self.partition_key(table.schema, table.name):
                if problem := _partition_key_problem(table, column):
                    raise ConfigError(
                        f"partition_key column {column!r} of table"
                        f" {table.full_name!r} {problem[0]}",
                        hint=problem[1],
                    )

    def open(
        self, origin: str, captured: Iterable[TableFacts], stack: ExitStack
    ) -> list[KafkaSink]:
        """Make the sinks; `origin` is system_identifier/database.

        Each closes with `stack`, and looks at its topics before the first record.
        """
        epoch = (self._positions.read("epoch") or {}).get("number", 0)
        tables = list(captured)
        sinks = []
        for name, config in self._configs.items():
            router = self._routers[name]
            # a backlog may hold tables that are gone: their topics count for the limits
            seen = self._seen_topics.setdefault(name, set())
            topics = {router.topic(table.schema, table.name) for table in tables} | seen
            sink = KafkaSink(
                SinkRules(
                    name=name,
                    format=config.format,
                    partitioner=config.partitioner,
                    on_truncate=config.on_truncate,
                    split_key_updates=config.split_key_updates,
                    source_header=f"{origin}/{epoch}".encode(),
                ),
                router,
                self._topics(name, config),
                producer=config.producer,
                expected=sorted(topic for topic in topics if topic is not None),
            )
            stack.callback(sink.close)
            stack.callback(_note_topics, seen, sink)
            sinks.append(sink)
        return sinks

    def _topics(self, name: str, config: KafkaSinkConfig) -> Topics:
        return Topics(
            client_properties(config.producer),
            Creation(
                allowed=config.create_topics,
                partitions=config.topic_partitions,
                replication=config.topic_replication,
                config={key: str(text) for key, text in config.topic_config.items()},
            ),
            accept=self._accept(name),
        )

    def _accept(self, sink: str) -> Callable[[Topic], None]:
        """Compare each topic with what was kept of it, before its first record."""

        def accept(topic: Topic) -> None:
            name = f"topics/{sink}/{topic.name}"
            found = {"partitions": topic.partitions, "identity": topic.identity}
            kept = self._positions.read(name)
            if kept == found:
                return
            kept = kept or found
            moved = kept["partitions"] != topic.partitions
            if moved and not self._options.accept_partitions:
                raise TopicLost(
                    f"topic {topic.name!r} has {topic.partitions} partitions, it"
                    f" had {kept['partitions']}: keys would move to others",
                    hint="walstream run --accept-partitions, when readers can bear"
                    " that a key's older records are in another partition",
                )
            if kept["identity"] != topic.identity:
                _log.warning(
                    "topic was created again: what was delivered before is gone",
                    **{TOPIC: topic.name},
                )
            self._positions.write({name: found})

        return accept


def _note_topics(seen: set[str], sink: KafkaSink) -> None:
    seen.update(sink.known_topics)


def _rules(config: KafkaSinkConfig) -> Rules:
    return Rules(
        mappings={
            table: TopicMapping(
                mapped.name,
                None if mapped.partition_key is None else tuple(mapped.partition_key),
            )
            for table, mapped in config.topics.items()
        },
        template=config.topic,
        fallback=config.fallback_topic,
        key=config.key,
    )


def _partition_key_problem(table: TableFacts, column: str) -> tuple[str, str] | None:
    """Say why a column cannot be a partition key, and the cure."""
    quoted = f'"{table.schema}"."{table.name}"'
    if column not in table.columns:
        return "is not in the table", f"its columns are {', '.join(table.columns)}"
    if column not in table.not_null:
        return (
            "may be null",
            f'run: ALTER TABLE {quoted} ALTER "{column}" SET NOT NULL',
        )
    whole = table.full and table.old_rows_whole
    if not whole and column not in table.identity:
        return (
            "is not in the replica identity: deletes would not carry it",
            f"run: ALTER TABLE {quoted} REPLICA IDENTITY FULL",
        )
    return None
