"""What the supervisor knows at one moment: made in its loop, read by other threads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

SILENT_S: Final = 3.0
"""A worker reports each second, and the supervisor looks twice as often."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Nobody changes what is in it."""

    at: float  # unix seconds
    made_at: float  # monotonic seconds
    pid: int
    started_at: float  # unix seconds
    stopping: bool
    log_level: str
    sources: Mapping[str, Mapping[str, Any]]  # what each one's worker told
    away: Mapping[str, Mapping[str, Any]]  # likewise of detached sinks, SOURCE/SINK
    counted: Mapping[str, Mapping[str, Any]]  # by the same names, and of the past

    @property
    def running(self) -> dict[str, Any]:
        """Give what the control socket tells of the same."""
        return {
            "pid": self.pid,
            "started_at": self.started_at,
            "sources": self.sources,
            "away": self.away,
        }

    def current(self, now: float) -> "Snapshot":
        """Judge once more, at monotonic `now`, who is silent: time goes on."""
        return Snapshot(
            self.at + (now - self.made_at),
            self.made_at,
            self.pid,
            self.started_at,
            self.stopping,
            self.log_level,
            {name: _judged(told, now) for name, told in self.sources.items()},
            {name: _judged(told, now) for name, told in self.away.items()},
            self.counted,
        )


def _judged(told: Mapping[str, Any], now: float) -> Mapping[str, Any]:
    heard_at = told["heard_at"]  # None: it is only starting, which a stall watch sees
    silent = told["pid"] is not None and heard_at is not None
    silent = silent and now - heard_at > SILENT_S
    return told if silent == told["silent"] else {**told, "silent": silent}
