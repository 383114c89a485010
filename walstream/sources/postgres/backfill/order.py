"""What the driver is told of a backfill: one snapshot's chunks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from walstream.config import Config
from walstream.kafka.topic import Topic
from walstream.sources.postgres.backfill.chunk import Chunk
from walstream.sources.postgres.backfill.task import ChunkTask
from walstream.sources.postgres.backfill.task_factory import Snapshot, chunk_task
from walstream.spark.leash import Leash


@dataclass(frozen=True, slots=True)
class SnapshotOrder:
    """One snapshot's chunks, and what their tasks are made of."""

    source: str
    snapshot: Snapshot
    topics: Mapping[str, Mapping[str, Topic]]  # as found, by sink
    chunks: Sequence[Chunk]
    lock: str
    at_once: int | None = None

    def task(self, config: Config, leash: Leash | None) -> ChunkTask:
        return chunk_task(config, self.source, self.snapshot, self.topics, leash)
