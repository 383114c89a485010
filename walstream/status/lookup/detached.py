"""Asks how a source's sinks are that are not in its stream, and what these hold."""

from collections.abc import Mapping

from walstream.config import PostgresSource
from walstream.errors import WalstreamError
from walstream.postgres import slot as slots
from walstream.postgres.connection import session
from walstream.sources.postgres.detached.detached_sink import (
    AWAY,
    BACK,
    DROPPED,
    DetachedSink,
)
from walstream.status.detached import DetachedStatus
from walstream.status.observer import Workers
from walstream.status.worker_state import WorkerState


def sights(
    source: PostgresSource,
    name: str,
    notes: Mapping[str, DetachedSink],
    workers: Workers,
) -> dict[str, DetachedStatus]:
    """Look at each; `workers` are those of a running instance."""
    found = {}
    for sink, note in notes.items():
        if note.phase == BACK:
            continue  # in the stream again
        error = workers.get(f"{name}/{sink}", WorkerState()).report.error
        said = error.error if error else ""
        held, lost = _retained(source, note)
        found[sink] = DetachedStatus(note, held, said, lost)
    return found


def _retained(source: PostgresSource, note: DetachedSink) -> tuple[int | None, bool]:
    """Return what a copy of the slot holds, if known, and whether it is lost."""
    if note.phase == DROPPED:
        return None, False
    try:
        with session(source.dsn) as connection:
            health = slots.health(connection, note.slot)
    except WalstreamError:
        return None, False
    if health is None:
        return None, note.phase == AWAY
    return health.retained_wal, health.lost is not None
