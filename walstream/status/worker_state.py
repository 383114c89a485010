"""State of one source's worker, for every kind of source."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from walstream.errors import Transient, WalstreamError
from walstream.sources.report import (
    ErrorReport,
    WorkerReport,
    as_document,
    of_document,
)
from walstream.telemetry.json_codec import Document, read, shallow

WAITS: Final = Transient.exit_code
_DEFECT: Final = WalstreamError.exit_code
_UNSENT: Final = ("report", "heard_at", "mute")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerState:
    """A source's worker, or a detached sink's, as its supervisor sees it."""

    report: WorkerReport = field(default_factory=WorkerReport)  # the last one
    pid: int | None = None  # None: no process runs
    exit_code: int | None = None  # final: it is not started again
    died_with: int | None = None  # its last exit code, until it is started again
    lent: bool = False  # to a command
    silent: bool = False  # it runs, and reports no more
    stalls: tuple[str, ...] = ()
    heard_at: float | None = None  # monotonic; None: it has said nothing yet
    mute: str = ""  # a process that holds the state folder and does not answer


def worker_document(worker: WorkerState) -> dict[str, object]:
    """Return a worker's state for the control socket."""
    own = {name: one for name, one in shallow(worker).items() if name not in _UNSENT}
    return {**as_document(worker.report), **own}


def worker_of(found: Document) -> WorkerState:
    """Return what `worker_document` gave; raise ValueError for anything else."""
    return replace(read(WorkerState, found), report=of_document(found))


def state_of(worker: WorkerState | None) -> tuple[str, int] | None:
    """Return the state and the exit code; None: nothing runs."""
    if worker is None:
        return None
    if (code := worker.exit_code) is not None:
        return ("failed" if code else "stopped"), code
    if worker.lent:
        return "lent", 0
    if worker.silent:
        return "silent", _DEFECT
    # without a process it died, and will be started again
    state = worker.report.state if worker.pid else "waiting"
    return state, WAITS if state == "waiting" or worker.stalls else 0


def problems_of(
    worker: WorkerState | None, state: str, error: ErrorReport | None
) -> Iterator[str]:
    """Yield why it is red, the nearest cause first; `error` is the last one."""
    waits = worker and worker.report.state == "waiting" and state == "waiting"
    if error and (waits or state == "failed"):
        yield error.error
    if worker is None:
        return
    if worker.mute:
        yield f"process {worker.mute} holds the state folder but does not answer"
    elif state == "silent":
        yield "its worker runs but sends no report"
    if (code := worker.died_with) is not None:
        yield (
            f"its worker died with exit code {code} and will be started again: the"
            " log says why"
        )
    yield from worker.stalls
