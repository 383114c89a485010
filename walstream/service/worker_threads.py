"""A worker's threads beside its sessions: words of the supervisor, reports, a deadline.

Each runs until the process ends; nothing of the stream waits for any of them.
"""

import contextlib
import os
import threading
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import structlog

from walstream.pipeline.shutdown import Stop
from walstream.service.supervisor_pipes import SupervisorPipes
from walstream.service.worker_order import WorkerRequest, request_of
from walstream.sources.report import WorkerAnswer
from walstream.telemetry import logs, runtime

_REPORT_EVERY_S: Final = 1.0
_LOOK_EVERY_S: Final = 0.05
_LATE_S: Final = 3.0  # after the deadline: who watches it has ended by then
_log = structlog.get_logger()


class LinkedWorker(Protocol):
    """The worker, as its supervisor reaches it."""

    @property
    def phase(self) -> str:
        """Name what it does now."""

    @property
    def answers(self) -> Mapping[str, WorkerAnswer]:
        """What it says to the last requests; another one when that changes."""

    @property
    def stopped_code(self) -> int:
        """Exit code of a stop at once."""

    def line(self) -> bytes:
        """Return the report's line; b"" where it fails."""

    def backfill(self, request: WorkerRequest) -> None:
        """Request that tables are read beside the stream."""

    def poll(self, request: WorkerRequest) -> None:
        """Poll each table once more."""


def obey(worker: LinkedWorker, stop: Stop, words: Iterable[str]) -> None:
    """Follow the supervisor's words; its end is ours."""
    for line in words:
        word, _, request = line.strip().partition(" ")
        if word == "stop":
            stop.request()
        elif word == "now":
            os._exit(worker.stopped_code)
        elif word == "backfill":
            worker.backfill(request_of(request))
        elif word == "poll":
            worker.poll(request_of(request))
        elif word == "log":
            logs.set_level(request)
            _log.debug("log level was changed", to=request)
    os._exit(1)


def push(
    worker: LinkedWorker,
    pipes: SupervisorPipes,
    over: threading.Event,
    told: threading.Event,
) -> None:
    """Write the state each second, and at once when it becomes another, or answers.

    A supervisor that does not read keeps this thread waiting, and nothing else. When
    `over` is set it writes a last report, with the error that ended the worker, and
    then sets `told`.
    """
    while not told.is_set():
        last = over.is_set()
        said, due = (
            (worker.phase, worker.answers),
            runtime.monotonic() + _REPORT_EVERY_S,
        )
        with contextlib.suppress(OSError):  # closed: the control pipe tells
            pipes.write(worker.line())
        if last:
            told.set()
        while (worker.phase, worker.answers) == said and runtime.monotonic() < due:
            if over.wait(_LOOK_EVERY_S):
                break


def end_in_time(stop: Stop, code: int) -> None:
    """End after the drain's deadline, whatever server is still waited for."""
    stop.event.wait()
    while not stop.expired:
        runtime.sleep(_LOOK_EVERY_S)
    runtime.sleep(_LATE_S)
    _log.warning("stopped before everything was delivered: the rest is sent again")
    logs.STDERR.flush()
    os._exit(code)
