"""Snapshot of the supervisor: made in its loop, read by other threads."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from walstream.status.instance import Instance
from walstream.status.worker_state import WorkerState
from walstream.telemetry.counts import ProcessCounts

SILENT_S: Final = 3.0
"""A worker reports each second, and the supervisor looks twice as often."""


@dataclass(frozen=True, slots=True)
class InstanceSnapshot:
    """Nobody changes what is in it."""

    at: float  # unix seconds
    made_at: float  # monotonic seconds
    pid: int
    started_at: float  # unix seconds
    stopping: bool
    log_level: str
    sources: Mapping[str, WorkerState]
    away: Mapping[str, WorkerState]  # of detached sinks, SOURCE/SINK
    counted: Mapping[str, ProcessCounts]  # by the same names, and of the past

    @property
    def running(self) -> Instance:
        """Return what the control socket tells of the same."""
        return Instance(
            self.pid, self.started_at, self.stopping, self.sources, self.away
        )

    def current(self, now: float) -> "InstanceSnapshot":
        """Judge once more, at monotonic `now`, who is silent: time goes on."""
        return InstanceSnapshot(
            self.at + (now - self.made_at),
            self.made_at,
            self.pid,
            self.started_at,
            self.stopping,
            self.log_level,
            {name: _judged(worker, now) for name, worker in self.sources.items()},
            {name: _judged(worker, now) for name, worker in self.away.items()},
            self.counted,
        )


def _judged(worker: WorkerState, now: float) -> WorkerState:
    heard_at = worker.heard_at  # None: it is only starting, which a stall watch sees
    silent = False
    if worker.pid is not None and heard_at is not None:
        silent = now - heard_at > SILENT_S
    return worker if silent == worker.silent else replace(worker, silent=silent)
