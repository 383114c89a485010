"""What the driver is told of a backfill: one snapshot's chunks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from walstream.chunk_task import Snapshot, chunk_task
from walstream.config import Config
from walstream.kafka.topic import Topic
from walstream.spark.chunk import Chunk
from walstream.spark.leash import Leash
from walstream.spark.task import ChunkTask


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
