"""Asks how a source's sinks are that are not in its stream, and what these hold."""

from collections.abc import Mapping

from walstream.config import PostgresSource
from walstream.errors import WalstreamError
from walstream.postgres import slot as slots
from walstream.postgres.connection import session
from walstream.sources.postgres.detached.record import BACK, DROPPED, Note
from walstream.status.detached import AwaySight
from walstream.status.report import Told


def sights(
    source: PostgresSource, name: str, notes: Mapping[str, Note], away: Told
) -> dict[str, AwaySight]:
    """Look at each; `away` is what a running instance tells of their workers."""
    found = {}
    for sink, note in notes.items():
        if note.phase == BACK:
            continue  # in the stream again
        error = (away.get(f"{name}/{sink}") or {}).get("error") or {}
        found[sink] = AwaySight(note, _retained(source, note), error.get("error", ""))
    return found


def _retained(source: PostgresSource, note: Note) -> int | None:
    if note.phase == DROPPED:
        return None
    try:
        with session(source.dsn) as connection:
            health = slots.health(connection, note.slot)
    except WalstreamError:
        return None
    return health.retained_wal if health else None
