"""Report of a running instance over its control socket: written and read here alone.

Only a source that streams holds its slot. A waiting worker uses its folder too, while
another client holds the slot.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from walstream.errors import PermissionLacking
from walstream.state.control import ask_status
from walstream.status.worker_state import WorkerState, worker_document, worker_of
from walstream.telemetry.json_codec import Document, read, read_all


@dataclass(frozen=True, slots=True)
class Instance:
    """A running instance and its workers."""

    pid: int
    started_at: float = 0.0  # unix seconds
    stopping: bool = False
    sources: Mapping[str, WorkerState] = field(default_factory=dict)
    away: Mapping[str, WorkerState] = field(default_factory=dict)  # SOURCE/SINK


@dataclass(frozen=True, slots=True)
class Streaming:
    """Sources that an instance streams; empty where none runs, or none answers."""

    instance: int | None = None  # the supervisor's process
    workers: Mapping[str, int] = field(default_factory=dict)  # processes, by source


def instance_document(instance: Instance) -> dict[str, object]:
    """Return an instance's answer on the control socket."""
    return {
        "pid": instance.pid,
        "started_at": instance.started_at,
        "stopping": instance.stopping,
        "sources": _documents(instance.sources),
        "away": _documents(instance.away),
    }


def instance_of(found: Document) -> Instance:
    """Return what `instance_document` gave; raise ValueError for anything else."""
    return Instance(
        read(int, found.get("pid")),
        read(float, found.get("started_at", 0.0)),
        read(bool, found.get("stopping", False)),
        _workers(found.get("sources", {})),
        _workers(found.get("away", {})),
    )


def running(folder: Path) -> Instance | None:
    """Return the instance of a state folder; None: none runs, or none answers."""
    found = ask_status(folder)
    with contextlib.suppress(ValueError):  # of another version
        return None if found is None else instance_of(found)
    return None


def streaming(folder: Path) -> Streaming:
    """Return what the instance of a state folder streams."""
    try:
        found = running(folder)
    except (OSError, PermissionLacking):  # another user's
        found = None
    return Streaming() if found is None else streamed_by(found)


def streamed_by(instance: Instance) -> Streaming:
    """Return what an instance streams: those slots are read by it."""
    workers = {
        name: worker.pid
        for name, worker in instance.sources.items()
        if worker.report.state == "streaming" and worker.pid is not None
    }
    return Streaming(instance.pid, workers)


def _documents(workers: Mapping[str, WorkerState]) -> dict[str, object]:
    return {name: worker_document(worker) for name, worker in workers.items()}


def _workers(found: object) -> dict[str, WorkerState]:
    documents = read_all(dict, found)
    return {name: worker_of(document) for name, document in documents.items()}
