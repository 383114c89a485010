"""Age of a table's missing keys: a clock that cannot be set.

Ages count by the kernel's time since boot, so that a wall clock that is set, forward or
back, moves none. Over a restart of walstream that time goes on; over a reboot, or on
another machine, nothing but wall clocks can tell how long it was, so at most a part of
what is waited for is believed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from walstream.telemetry import runtime

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_UNKNOWN: Final = "?"  # is no boot of before
_BELIEVED: Final = 0.1  # of the timeout: how far a reboot moves ages, at most


@dataclass(frozen=True, slots=True)
class Times:
    """Source of the time."""

    wall: Callable[[], float] = runtime.time
    since_boot: Callable[[], float] = runtime.since_boot
    boot: str = ""  # tells one start of a machine from others; "": look


@dataclass(frozen=True, slots=True)
class ClockReading:
    """A reading of a clock, as it is stored."""

    at: float  # its own time
    ticks: float  # seconds since the machine was started
    wall: float  # unix seconds
    boot: str


class Clock:
    """Clock of Unix seconds: its first stored time, and what passed since.

    So it may differ from the wall clock, by which only people are told.
    """

    def __init__(
        self,
        stored: ClockReading | None,
        timeout_s: float,
        times: Times | None = None,
    ) -> None:
        """Go on from a `reading` of before; ages are held against `timeout_s`."""
        self._times = times or Times()
        self._boot = self._times.boot or _boot()
        ticks, wall = self._times.since_boot(), self._times.wall()
        at = wall
        if stored is not None:
            at = stored.at
            same_boot = self._boot != _UNKNOWN and stored.boot == self._boot
            if same_boot and ticks >= stored.ticks:
                at += ticks - stored.ticks
            else:
                passed = wall - stored.wall
                at += min(max(0.0, passed), timeout_s * _BELIEVED)
        self._offset = at - ticks

    def now(self) -> float:
        return self._times.since_boot() + self._offset

    def reading(self) -> ClockReading:
        """Return what is stored."""
        return ClockReading(
            self.now(), self._times.since_boot(), self._times.wall(), self._boot
        )


def _boot() -> str:
    try:
        return _BOOT.read_text("ascii").strip()
    except OSError:
        return _UNKNOWN
