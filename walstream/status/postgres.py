"""One source, as all who know something of it tell: instance, folder, server: pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from walstream.config import PostgresSource
from walstream.errors import HistoryError, WalstreamError
from walstream.lsn import WAL_PAGE_HEADER, parse
from walstream.postgres.slot_health import (
    SlotHealth,
    alarm_text,
    spill_text,
)
from walstream.sources.figures import StreamFigures
from walstream.sources.postgres.backfill.progress import BackfillProgress
from walstream.sources.postgres.detached.detached_sink import DetachedSink
from walstream.sources.postgres.incremental.progress import TableRequests, stored
from walstream.sources.report import ErrorReport, IncrementalReport, StreamReport
from walstream.status.worker_state import WorkerState, problems_of, state_of


@dataclass(slots=True)
class StoredStream:
    """Facts of the state folder, whether or not walstream runs."""

    resume: int | None = None
    figures: StreamFigures = field(default_factory=StreamFigures)
    error: ErrorReport | None = None
    backfill: BackfillProgress | None = None
    beside: TableRequests | None = None
    away: dict[str, DetachedSink] = field(default_factory=dict)  # by sink
    problem: WalstreamError | None = None


@dataclass(frozen=True, slots=True)
class PostgresState:
    """One source, as all who know something of it tell."""

    source: PostgresSource
    kept: StoredStream
    told: WorkerState | None  # by the running instance; None: none runs
    health: SlotHealth | None
    unreachable: WalstreamError | None
    stale: bool = False  # nobody tells how the server is now

    @property
    def error(self) -> ErrorReport | None:
        return (self.told and self.told.report.error) or self.kept.error

    @property
    def report(self) -> StreamReport | None:
        """Return its worker's report; None: there is none."""
        return self.told.report.stream if self.told else None

    @property
    def figures(self) -> StreamReport | StreamFigures:
        return self.report or self.kept.figures

    @property
    def beside(self) -> Mapping[str, IncrementalReport]:
        """Return how the tables are that are read beside the stream."""
        if self.report is None or self.report.beside is None:
            return stored(self.kept.beside)
        return self.report.beside

    @property
    def resume(self) -> int | None:
        reported = self.report.resume if self.report else None
        found = parse(reported) if reported else 0
        return max(found, self.kept.resume or 0) or None

    @property
    def lag_bytes(self) -> int | None:
        if self.stale or self.health is None or self.resume is None:
            return None
        behind = self.health.flush_lsn - self.resume
        return behind if behind > WAL_PAGE_HEADER else 0

    def lag_s(self, now: float) -> float | None:
        told = self.report.lag_s if self.report else None
        silent = self.told is not None and self.told.silent
        if told is not None and not (self.stale or silent):
            return float(told)
        if self.lag_bytes == 0:
            return 0.0
        current_at = self.kept.figures.current_at
        return max(0.0, now - current_at) if current_at else None

    def state(self) -> tuple[str, int]:
        """Return its state and the exit code."""
        return state_of(self.told) or self._state_at_rest()

    def _state_at_rest(self) -> tuple[str, int]:
        if self.kept.problem is not None:
            return "failed", self.kept.problem.exit_code
        if self.error is not None and self.error.final:
            return "failed", self.error.exit_code
        if self.unreachable is not None:
            return "stopped", self.unreachable.exit_code
        if self.kept.resume is None:
            return "new", 0
        return "stopped", HistoryError.exit_code if self.slot_problem else 0

    @property
    def slot_problem(self) -> str:
        """Return why the slot can no longer be read; "" while it can."""
        if self.unreachable is not None or not self.kept.resume:
            return ""
        if self.health is None:
            return f"slot {self.source.slot!r} is gone"
        if self.health.lost:
            return f"slot {self.source.slot!r} cannot be read: {self.health.lost}"
        return ""

    @property
    def alarm(self) -> str:
        held = self.health.retained_wal if self.health else 0
        text = alarm_text(self.source.slot, held, self.source.alarm_retained_wal)
        limit = self.report.held_by if self.report else ""
        return f"{text}: {limit} holds the stream" if text and limit else text

    @property
    def spill_alarm(self) -> str:
        """Return the alarm of too much spilled to disk; "" where there is none."""
        return spill_text(self.source.slot, self.health, self.source.alarm_spill)

    @property
    def synchronous(self) -> str:
        """Return a message that commits wait for it; "" where they do not, or may."""
        if self.health is None or self.source.allow_synchronous:
            return ""
        return self.health.synchronous

    def problems(self, state: str) -> Iterator[str]:
        """Yield why it is red, the nearest cause first."""
        yield from problems_of(self.told, state, self.error)
        for problem in (self.kept.problem, self.unreachable):
            if problem is not None:
                yield str(problem.args[0])
        of_slot = self.slot_problem, self.alarm, self.spill_alarm, self.synchronous
        yield from filter(None, of_slot)
        yield from parked_problems(self.told)


def parked_problems(told: WorkerState | None) -> Iterator[str]:
    """Yield sinks whose run left word of records that were too large."""
    for name, sink in (told.report.sinks if told else {}).items():
        if count := sink.parked_now:
            tables = sink.tables
            of = ", ".join(sorted(t for t in tables if "parked" in tables[t]))
            plural = "" if count == 1 else "s"
            yield (
                f"sink {name!r} parked {count} record{plural} too large for "
                f"{'its' if count == 1 else 'their'} topic, of {of}: readers lack the "
                "records that the topic of on_too_large lists"
            )
