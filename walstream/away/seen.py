"""What is told of a source's sinks that are not in its stream."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from walstream.away.note import AWAY, BACK, DROPPED, Note
from walstream.config import PostgresSource
from walstream.errors import WalstreamError
from walstream.postgres import slot as slots
from walstream.postgres.connection import session
from walstream.told import Told

_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class AwaySight:
    """One of them."""

    note: Note
    retained_wal: int | None  # bytes that its copy of the slot holds; None: not known
    error: str  # why its own worker does not get on, or ""

    @property
    def state(self) -> str:
        return "dropped" if self.note.phase == DROPPED else "detached"

    def problem(self, sink: str) -> str:
        """Say it in a line."""
        note = self.note
        since = datetime.fromtimestamp(note.since, UTC).isoformat(timespec="seconds")
        if note.phase == DROPPED:
            return (
                f"sink {sink!r} was given up at {since}, as its on_failure says, and"
                f" gets nothing: {note.why}"
            )
        held = ""
        if self.retained_wal is not None:
            held = f", which holds {self.retained_wal / _MIB:.1f} MiB of WAL"
        said = f"sink {sink!r} is detached since {since}: {self.error or note.why}"
        if note.phase != AWAY:
            return (
                f"{said}. The source's position waits until it has a copy of the slot"
            )
        return f"{said}. It streams from slot {note.slot!r}{held}"


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
