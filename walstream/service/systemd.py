"""Notifications to systemd: readiness, status, and the watchdog of all loops.

Ready is a supervisor that took its state and its addresses, and turns: a start must not
hang, and fail after a while, because Kafka or a database is away. Whether all flows is
told by the status line and by `/ready`. Nothing is sent where nobody asked.
"""

import contextlib
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import structlog

from walstream.status.worker_state import WorkerState
from walstream.telemetry import runtime

_EVERY_S: Final = 5.0  # the status line is no older
_MARGIN_S: Final = 5.0  # for the process to leave, after its drain
_RUNS_MOST: Final = 8  # sources that the line names
_MICRO: Final = 1_000_000
_log = structlog.get_logger()

Workers = Mapping[str, WorkerState]


class Notifier:
    """Speaks sd_notify's protocol: datagrams of KEY=value lines."""

    def __init__(
        self,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = runtime.monotonic,
    ) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._clock = clock
        self._watched, self._limit_s = _watchdog(environment)
        self._every_s = min(_EVERY_S, self._limit_s / 2)
        self._due_at = clock()
        self._ready = False
        self._status = ""
        self._hanging: list[str] = []

    @property
    def due(self) -> bool:
        """Return whether it is time to `tell`."""
        return bool(self._address) and self._clock() >= self._due_at

    @property
    def patience_s(self) -> float:
        """How long a worker may hang: half of what systemd waits; else for ever."""
        return self._limit_s / 2 if self._address and self._watched else float("inf")

    def tell(self, workers: Workers, hanging: Iterable[str]) -> None:
        """Log how all is; feed the watchdog unless something hangs."""
        self._due_at = self._clock() + self._every_s
        stuck = sorted(hanging)
        lines = [] if self._ready else ["READY=1"]
        if self._watched and not stuck:
            lines.append("WATCHDOG=1")
        if (status := _status(workers, stuck)) != self._status:
            lines.append(f"STATUS={status}")
        if stuck and stuck != self._hanging and self._watched:
            _log.error(
                "systemd's watchdog gets no signal: a worker hangs", workers=stuck
            )
        self._hanging = stuck
        if self._send(lines):  # else once more, next time
            self._ready, self._status = True, status

    def stopping(self, drain_s: float) -> None:
        """Log that it drains, and for how long at most: no SIGKILL before that."""
        extend = int((drain_s + _MARGIN_S) * _MICRO)
        self._status = "drains"
        self._send(["STOPPING=1", "STATUS=drains", f"EXTEND_TIMEOUT_USEC={extend}"])

    def _send(self, lines: list[str]) -> bool:
        """Return whether it was taken."""
        if not self._address or not lines:
            return False
        address = self._address
        if address.startswith("@"):  # no file: an abstract one
            address = "\0" + address[1:]
        # who asked may be gone, or slow: the stream goes on
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as outlet,
        ):
            outlet.setblocking(False)  # noqa: FBT003 - the standard library's
            outlet.sendto("\n".join(lines).encode(), address)
            return True
        return False


def _watchdog(environment: Mapping[str, str]) -> tuple[bool, float]:
    """Return whether this process is to feed one, and how long it waits."""
    text = environment.get("WATCHDOG_USEC", "")
    meant = environment.get("WATCHDOG_PID", "") in {"", str(os.getpid())}
    if meant and text.isdecimal() and int(text):
        return True, int(text) / _MICRO
    return False, 2 * _EVERY_S


def _status(workers: Workers, stuck: list[str]) -> str:
    """Return how each is, in one line."""
    if stuck:
        return f"hangs: {', '.join(stuck)}"
    states = [f"{name} {_state(workers[name])}" for name in sorted(workers)]
    if len(states) > _RUNS_MOST:
        more = len(states) - _RUNS_MOST
        states = [*states[:_RUNS_MOST], f"and {more} more"]
    return ", ".join(states)


def _state(worker: WorkerState) -> str:
    if worker.lent:
        return "lent to a command"
    if worker.exit_code is not None:
        return f"stopped ({worker.exit_code})"
    return worker.report.state
