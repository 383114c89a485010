"""Schedule of a worker's restarts, by how its processes ended: no clock.

A time is monotonic, and the caller's.
"""

import signal
from typing import Final

from walstream.config.run_options import ALL_DONE
from walstream.errors import (
    ConfigError,
    HistoryError,
    PermissionLacking,
    Transient,
    WalstreamError,
)
from walstream.pipeline.backoff import Backoff
from walstream.service.reload_grace import ReloadGrace

_NEEDS_OPERATOR: Final = frozenset(
    {
        ConfigError.exit_code,
        HistoryError.exit_code,
        PermissionLacking.exit_code,
        Transient.exit_code,  # a worker that can wait does not end
    }
)
_MEMORY_FAULTS: Final = frozenset({-signal.SIGBUS, -signal.SIGSEGV, -signal.SIGABRT})
_HEALTHY_S: Final = 30.0
_FIRST_S: Final = 0.2
_LONGEST_S: Final = 30.0


class RestartSchedule:
    """For the processes of one source, or of one detached sink."""

    def __init__(self, renewal: ReloadGrace, *, of_sink: bool) -> None:
        self.exit_code: int | None = None  # final: it is not started again
        self.died_with: int | None = None  # its last exit code, unless it was asked to
        self.deaths = 0  # of processes that nobody had asked to end
        self.renewal = renewal
        self._of_sink = of_sink
        self._backoff = Backoff(_FIRST_S, _LONGEST_S)
        self._start_at = 0.0

    def is_due(self, now: float) -> bool:
        """Return whether its end was not final, and its wait is over."""
        return self.exit_code is None and now >= self._start_at

    def hurry(self) -> None:
        """Wait no longer, and begin with short waits again."""
        self._start_at = 0.0
        self._backoff.reset()

    def put_off(self, now: float) -> float:
        """Wait before the next start; return for how long."""
        wait_s = self._backoff.next()
        self._start_at = now + wait_s
        return wait_s

    def damages(self, code: int, lived_s: float) -> bool:
        """Return whether such an end is one of a state folder that is damaged."""
        return code in _MEMORY_FAULTS and lived_s < _HEALTHY_S and not self._of_sink

    def end(
        self, code: int, lived_s: float, now: float, *, stopping: bool
    ) -> float | None:
        """Take in that a process ended; return the wait. None: it is for good."""
        if self.damages(code, lived_s):
            self.exit_code = HistoryError.exit_code
        elif code == ALL_DONE:
            self.exit_code = 0
        elif (code in _NEEDS_OPERATOR and not self._of_sink) or (
            stopping and code >= 0
        ):
            self.exit_code = code
        elif stopping:
            self.exit_code = WalstreamError.exit_code
        else:
            if lived_s > _HEALTHY_S:
                self._backoff.reset()
            self.died_with = code
            self.deaths += 1
            return self.put_off(now)
        return None

    @property
    def needs_operator(self) -> bool:
        """Return whether it ended for good, with an error for an operator."""
        return self.exit_code in _NEEDS_OPERATOR

    def renew(self, now: float) -> float | None:
        """Start one that was refused again after a while; return the wait.

        None: its grace is over.
        """
        if self.renewal.is_first():
            self._backoff.reset()  # whatever it waited for at the last rotation
        if not self.renewal.goes_on():
            return None
        self.died_with, self.exit_code = self.exit_code, None
        return self.put_off(now)
