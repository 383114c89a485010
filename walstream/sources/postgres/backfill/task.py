"""Task for one chunk in Spark: read it, encode it, send it, wait for delivery.

Pickled into a worker with its database and its sinks. What it raises, Spark tries again
and shows to people: so an error says the chunk and the cause, never a value, a secret
or a library's own words around them. Spark's tries are few, and soon over: so they are
for what may be the chunk's own fault alone. What no retry can cure is returned instead,
and so is what passes, a refused connection or a broker that is away: it may take long.
"""

import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Final, Self

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Restart, Transient, WalstreamError
from walstream.kafka.size_dispute import settled
from walstream.lsn import Lsn
from walstream.sources.postgres.backfill.chunk import Chunk, Void
from walstream.sources.postgres.backfill.reader import (
    SnapshotDatabase,
    blocks,
    under_snapshot,
)
from walstream.sources.postgres.backfill.task_sink import TaskSink, TaskTarget
from walstream.spark.leash import Leash
from walstream.spark.outcome import (
    ChunkDone,
    ChunkFailed,
    ChunkPostponed,
    ChunkRefused,
    Unreadable,
)
from walstream.telemetry import runtime

_AGAIN_S: Final = 1.0

Outcome = ChunkDone | ChunkPostponed | ChunkRefused


@dataclass(frozen=True, slots=True)
class ChunkTask:
    """Reads chunks of one snapshot for all sinks of a source."""

    database: SnapshotDatabase
    snapshot: str
    lsn: Lsn  # of the snapshot's rows: the consistent point, or high watermark, less 1
    targets: tuple[TaskTarget, ...]
    leash: Leash | None = None  # where tasks run on the driver's machine
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    def of(self, chunk: Chunk) -> Self:
        """Return the task for chunks of one table, to be sent to each of them."""
        table = chunk.relation.table
        return replace(self, targets=tuple(one.of(table) for one in self.targets))

    def __call__(self, chunk: Chunk) -> Outcome:
        """Do one chunk; raise ChunkFailed when Spark should try again."""
        try:
            with ExitStack() as stack:
                if self.leash is not None:
                    stack.enter_context(self.leash.worn())
                return self._read(chunk)
        except WalstreamError as error:
            return self._failed(chunk, settled(error, self._written()))
        except Exception as error:  # noqa: BLE001 - its words may hold values
            where = traceback.extract_tb(error.__traceback__)[-1]
            name = type(error).__name__
            raise ChunkFailed(
                f"{chunk}: {name} in {where.name}, {where.filename}:{where.lineno}"
            ) from None

    def _written(self) -> Iterator[tuple[ClientProperties, Mapping[str, int]]]:
        """Yield what is written with, and what its topics took as they were found."""
        for one in self.targets:
            limits = {name: shape.limit for name, shape in one.topics.items()}
            yield one.outgoing.producer, limits

    def _failed(self, chunk: Chunk, error: WalstreamError) -> Outcome:
        """Return what is to be done about it; raise what Spark is to try again."""
        clean = error.cleaned(self.secrets)
        text = f"{chunk}: {clean.args[0]}"
        if isinstance(error, Unreadable) and not error.retryable:
            told = Unreadable(text, hint=clean.hint, repair=clean.repair)
            return ChunkRefused(chunk.number, told)
        if isinstance(error, Void | Restart) or not error.retryable:
            return ChunkRefused(chunk.number, clean)
        runtime.sleep(_AGAIN_S)  # whoever tries again does so at once
        if isinstance(error, Unreadable):
            raise ChunkFailed(text) from None
        return ChunkPostponed(chunk.number, Transient(text, hint=clean.hint))

    def _read(self, chunk: Chunk) -> ChunkDone:
        check = self.leash.check if self.leash is not None else _nothing
        outlets: list[TaskSink] = []
        try:
            # before the snapshot is imported: whoever fences these transactions after
            # that snapshot went knows that nothing of it is sent any more
            for target in self.targets:
                outlets.append(TaskSink(target, chunk, self.lsn, check))  # noqa: PERF401 - those that were made are closed
            count = 0
            for block in self._blocks(chunk):
                check()
                sent = 0
                for outlet in outlets:
                    sent = outlet.send(block, count)
                count += sent
            for outlet in outlets:
                outlet.finish()
        except BaseException:
            for outlet in outlets:
                outlet.abandon()
            raise
        return ChunkDone(
            chunk.number,
            count,
            sum(outlet.bytes for outlet in outlets),
            {
                target.outgoing.sink: outlet.last
                for target, outlet in zip(self.targets, outlets, strict=True)
            },
            {
                target.outgoing.sink: outlet.tally
                for target, outlet in zip(self.targets, outlets, strict=True)
                if outlet.tally
            },
            {
                target.outgoing.sink: losses
                for target, outlet in zip(self.targets, outlets, strict=True)
                if (losses := outlet.losses)
            },
        )

    def _blocks(self, chunk: Chunk) -> Iterator[bytes]:
        with under_snapshot(self.database, self.snapshot) as connection:
            yield from blocks(connection, chunk)


def _nothing() -> None:
    """Do not check: on a cluster, Spark ends the tasks of a driver that is gone."""
