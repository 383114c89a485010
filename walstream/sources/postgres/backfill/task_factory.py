"""A source's chunk task, composed of what the adapters offer.

The tasks read as the stream's sessions do, and send as its sinks do: the same settings
of values, encoder, router, partitioner and producer properties.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from walstream.config import Config, KafkaSinkConfig
from walstream.config.sink import RoutedSink
from walstream.formats.encodings.subject import SchemaId
from walstream.kafka.bulk_producer import BULK, Outgoing
from walstream.kafka.fencing import TRANSACTION
from walstream.kafka.producer_config import producer_properties
from walstream.kafka.topic import layout_headers
from walstream.kafka.topic_limits import DEFAULT_LIMIT
from walstream.lsn import Lsn
from walstream.pipeline.ports import SinkTopic
from walstream.postgres.catalog import TableFacts
from walstream.sources.handlers import handler_specs
from walstream.sources.postgres.backfill.chunk import Chunk
from walstream.sources.postgres.backfill.publication_filter import KeyedTable
from walstream.sources.postgres.backfill.reader import SnapshotDatabase
from walstream.sources.postgres.backfill.task import ChunkTask
from walstream.sources.postgres.backfill.task_sink import TaskTarget, TopicShape
from walstream.sources.routers import Routers
from walstream.spark.leash import Leash

SinkIds = Mapping[str, Mapping[str, SchemaId]]
"""Ids of schemas by sink, and by the digests of the schemas."""


@dataclass(frozen=True, slots=True)
class TaskSnapshot:
    """Resources of tasks: what they read, and the settings of their records."""

    name: str  # as exported
    lsn: Lsn  # of its rows
    source_header: bytes  # system_identifier/database/epoch
    ids: SinkIds = field(default_factory=dict)


def transactions(slot: str, sink: str, source_header: bytes) -> str:
    """Name the transactions of a sink's chunks, but for the chunk's number.

    The same under each snapshot, so that a later one fences what an earlier one left.
    Two servers may have slots of one name.
    """
    server = source_header.partition(b"/")[0].decode()
    return f"{slot}-{server}-{sink}"


def wanted(
    table: TableFacts,
    publications: Sequence[str],
    *,
    by_key: bool = False,
    facts: bool = False,
) -> KeyedTable:
    """Return what is read of a table, keyed as its stream is."""
    return KeyedTable(
        table.schema,
        table.name,
        table.primary_key if table.full else table.identity,
        tuple(publications),
        table.primary_key,
        by_key,
        facts,
    )


def chunk_task(
    config: Config,
    source: str,
    snapshot: TaskSnapshot,
    topics: Mapping[str, Mapping[str, SinkTopic]],
    leash: Leash | None = None,
) -> ChunkTask:
    """Make the task; `topics` are those of each sink, as they were found.

    With a leash tasks run here; without one they run elsewhere, and each chunk is a
    Kafka transaction, in which a retry fences the attempt before it, also one of an
    earlier snapshot.
    """
    found = config.postgres_source(source)
    routers = Routers(config, source)
    origin = snapshot.source_header.decode().rpartition("/")[0]
    targets = []
    for name, dry in routers.routed.items():
        if name in topics and not isinstance(dry, KafkaSinkConfig):
            targets.append(_dry(routers, name, origin, dry))
    for name, sink in routers.configs.items():
        if name not in topics:
            continue  # it was given up
        limits = [topic.limit for topic in topics[name].values()] or [DEFAULT_LIMIT]
        targets.append(
            TaskTarget(
                Outgoing(
                    name,
                    producer_properties(
                        {**BULK, **sink.producer, **({} if leash else TRANSACTION)},
                        min(limits),
                        max(limits),
                    ),
                    (("walstream-source", snapshot.source_header),),
                ),
                format=sink.format,
                partitioner=sink.partitioner,
                router=routers[name],
                topics={
                    topic.name: TopicShape(
                        topic.partitions,
                        topic.limit,
                        topic.advice,
                        layout_headers(topic.layout),
                    )
                    for topic in topics[name].values()
                },
                context=replace(
                    routers.context(name, origin), ids=snapshot.ids.get(name, {})
                ),
                handlers=handler_specs(sink),
                parking="" if sink.on_too_large == "stop" else sink.on_too_large,
                transactions=""
                if leash
                else transactions(found.slot, name, snapshot.source_header),
            )
        )
    return ChunkTask(
        SnapshotDatabase(found.dsn),
        snapshot.name,
        snapshot.lsn,
        tuple(targets),
        leash,
        config.secrets_of(source, topics),
    )


def _dry(routers: Routers, name: str, origin: str, sink: RoutedSink) -> TaskTarget:
    """Make the target of a sink that sends nothing."""
    return TaskTarget(
        Outgoing(name, {}),
        format=sink.format,
        partitioner="murmur2",
        router=routers[name],
        topics={},
        context=routers.context(name, origin),
        handlers=handler_specs(sink),
        dry=True,
    )


@dataclass(frozen=True, slots=True)
class SnapshotOrder:
    """One snapshot's chunks, and what their tasks are made of."""

    source: str
    snapshot: TaskSnapshot
    topics: Mapping[str, Mapping[str, SinkTopic]]  # as found, by sink
    chunks: Sequence[Chunk]
    lock: str
    at_once: int | None = None
    in_process: bool = False  # by the driver itself, without Spark

    def task(self, config: Config, leash: Leash | None) -> ChunkTask:
        return chunk_task(config, self.source, self.snapshot, self.topics, leash)
