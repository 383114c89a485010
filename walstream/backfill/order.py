"""What a driver is told over its stdin, and what it says over its stdout: pickled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from walstream.chunk_task import Snapshot
from walstream.errors import WalstreamError
from walstream.kafka.topics import Topic
from walstream.spark.chunk import Chunk, ChunkDone


@dataclass(frozen=True, slots=True)
class Order:
    """One snapshot's chunks, and all that their tasks are made of."""

    parent: int  # pid
    config: str = field(repr=False)  # as JSON
    source: str
    snapshot: Snapshot
    topics: Mapping[str, Mapping[str, Topic]]  # as found, by sink
    chunks: Sequence[Chunk]
    lock: str  # a file that each task of this machine holds shared


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a driver ended before its time."""

    error: WalstreamError


@dataclass(frozen=True, slots=True)
class Finished:
    """Every chunk of the order is delivered."""


Message = ChunkDone | Failed | Finished
