"""What became of a chunk: results of a Spark task, and the errors that end it; pure."""

from dataclasses import dataclass, field
from typing import ClassVar

from walstream.errors import WalstreamError
from walstream.telemetry.tally import Tally


class ChunkFailed(WalstreamError):
    """A chunk failed as often as Spark tries: the table, the range, the cause."""

    exit_code: ClassVar[int] = 5


class Unreadable(WalstreamError):
    """The server does not give these rows, whoever asks for them however often."""

    exit_code: ClassVar[int] = 5


@dataclass(frozen=True, slots=True)
class ChunkDone:
    """What a task did; all its records are delivered."""

    number: int
    rows: int
    bytes: int  # of keys and values
    last: dict[str, dict[int, int]] = field(default_factory=dict)
    """The offset of the last record in each partition, by sink."""
    tallies: dict[str, Tally] = field(default_factory=dict)
    """What did not go its usual way, by sink."""


@dataclass(frozen=True, slots=True)
class ChunkRefused:
    """Why a chunk need not be tried again: as a result, since Spark would."""

    number: int
    error: WalstreamError


@dataclass(frozen=True, slots=True)
class ChunkPostponed:
    """Why a chunk has to be tried again later: what passes is no fault of its own."""

    number: int
    error: WalstreamError
    died: bool = False  # who read it; then it may be the chunk's fault after all
