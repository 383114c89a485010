"""Outcome of a chunk: results of a Spark task, and the errors that end it; pure."""

from dataclasses import dataclass, field
from typing import ClassVar

from walstream.errors import RecordRefused, WalstreamError
from walstream.telemetry.tally import Tally


class ChunkFailed(WalstreamError):
    """A chunk failed as often as Spark tries: the table, the range, the cause."""

    exit_code: ClassVar[int] = 5


class Unreadable(WalstreamError):
    """The server does not give these rows, whoever asks for them however often."""

    exit_code: ClassVar[int] = 5


@dataclass(frozen=True, slots=True)
class ColumnLosses:
    """Columns and values of one table that a sink's format has no form for."""

    left_out: tuple[str, ...] = ()
    lost: dict[tuple[str, str], int] = field(default_factory=dict)
    """Values, by column and reason."""

    def __bool__(self) -> bool:
        return bool(self.left_out or self.lost)


@dataclass(frozen=True, slots=True)
class ChunkDone:
    """Result of a task; all its records are delivered."""

    number: int
    rows: int
    bytes: int  # of keys and values
    last: dict[str, dict[int, int]] = field(default_factory=dict)
    """The offset of the last record in each partition, by sink."""
    tallies: dict[str, Tally] = field(default_factory=dict)
    """What did not go its usual way, by sink."""
    losses: dict[str, dict[str, ColumnLosses]] = field(default_factory=dict)
    """What had no form, by sink and table."""


@dataclass(frozen=True, slots=True)
class ChunkRefused:
    """Lasting failure of a chunk: a result, because Spark would retry an error."""

    number: int
    error: WalstreamError


@dataclass(frozen=True, slots=True)
class ChunkPostponed:
    """Passing failure of a chunk, which has to be tried again later."""

    number: int
    error: WalstreamError
    died: bool = False  # who read it; then it may be the chunk's fault after all


def refusal(outcome: ChunkRefused) -> WalstreamError:
    """Return the error that a refusal is: the chunk is to blame for some."""
    error = outcome.error
    if isinstance(error, Unreadable):
        return ChunkFailed(str(error.args[0]), hint=error.hint, repair=error.repair)
    if isinstance(error, RecordRefused):
        text = f"chunk {outcome.number}: {error.args[0]}"
        return ChunkFailed(text, hint=error.hint, repair=error.repair)
    return error
