"""Facts about sources for `status` that no worker report contains.

`walstream status` asks state folders and servers (`walstream.status.lookup`); the
instance itself asks nobody: its workers told it what they know.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from walstream.config import Config, KafkaSource, PostgresSource, SqlSource
from walstream.errors import WalstreamError
from walstream.postgres.slot_health import (
    SlotHealth,
)
from walstream.sources.figures import RelayFigures, StreamFigures
from walstream.sources.postgres.backfill.progress import BackfillProgress
from walstream.sources.postgres.detached.detached_sink import BACK, DetachedSink
from walstream.sources.report import BackfillLeft, StreamReport
from walstream.status.detached import DetachedStatus
from walstream.status.kafka import GroupSight
from walstream.status.kafka import StoredRelay as KeptRecords
from walstream.status.postgres import StoredStream
from walstream.status.sql import (
    StoredPolls as KeptPolls,
)
from walstream.status.worker_state import WorkerState

Workers = Mapping[str, WorkerState]
"""Workers of detached sinks, by SOURCE/SINK."""


class StatusObserver(Protocol):
    """Observer of what a source's report does not contain."""

    config: Config

    def kept(self, name: str, told: WorkerState | None, /) -> StoredStream:
        """Return what is kept of a postgres source."""

    def polls(self, name: str, source: SqlSource, /) -> KeptPolls:
        """Return what is kept of a sql source."""

    def chained(
        self, name: str, source: KafkaSource, told: WorkerState | None, /
    ) -> tuple[KeptRecords, GroupSight]:
        """Return what is kept of a kafka source, and how far its group is."""

    def health(
        self, source: PostgresSource, told: WorkerState | None, /
    ) -> tuple[SlotHealth | None, WalstreamError | None]:
        """Return how the slot is, or why that cannot be known."""

    def stale(self, told: WorkerState | None, /) -> bool:
        """Return whether `health` is of some time ago."""

    def away(
        self, source: PostgresSource, name: str, kept: StoredStream, /
    ) -> dict[str, DetachedStatus]:
        """Return how each sink is that is not in the stream."""


def _record(left: BackfillLeft) -> BackfillProgress:
    return BackfillProgress(
        left.lsn,
        left.tables,
        left.replace,
        left.others,
        left.rows,
        left.failed,
        where=left.where,
    )


class ReportObserver:
    """Asks nobody: what the instance itself was told has to do."""

    def __init__(self, config: Config, detached: Workers) -> None:
        """`detached` are the workers of detached sinks."""
        self.config = config
        self._detached = detached

    def kept(self, _name: str, told: WorkerState | None) -> StoredStream:
        report = (told and told.report.stream) or StreamReport()
        left = report.backfill_record
        return StoredStream(
            figures=StreamFigures(
                ops=report.ops,
                delivered=report.delivered,
                current_at=report.current_at or 0.0,
            ),
            backfill=None if left is None else _record(left),
            away={
                sink: DetachedSink(one.phase, one.slot, one.since, one.why, 0)
                for sink, one in report.away.items()
            },
        )

    def polls(self, _name: str, _source: SqlSource) -> KeptPolls:
        return KeptPolls()

    def chained(
        self, _name: str, _source: KafkaSource, told: WorkerState | None
    ) -> tuple[KeptRecords, GroupSight]:
        figures = None
        if report := told and told.report.relay:
            figures = RelayFigures(
                ops=report.ops, delivered=report.delivered, poisoned=report.poisoned
            )
        return KeptRecords(figures), GroupSight(asked=False)

    def health(
        self, _source: PostgresSource, told: WorkerState | None
    ) -> tuple[SlotHealth | None, WalstreamError | None]:
        report = (told and told.report.stream) or StreamReport()
        if (found := report.health) is None:
            return None, None
        # what was streamed since it was asked, the server had
        flush_lsn = max(found.flush_lsn, report.received or 0)
        return replace(found, flush_lsn=flush_lsn), None

    def stale(self, told: WorkerState | None) -> bool:
        return told is None or told.pid is None or told.silent

    def away(
        self, _source: PostgresSource, name: str, kept: StoredStream
    ) -> dict[str, DetachedStatus]:
        found = {}
        for sink, note in kept.away.items():
            if note.phase != BACK:
                own = self._detached.get(f"{name}/{sink}", WorkerState()).report
                health = own.stream.health if own.stream else None
                held = health.retained_wal if health else None
                error = own.error.error if own.error else ""
                lost = health is not None and health.lost is not None
                found[sink] = DetachedStatus(note, held, error, lost)
        return found
