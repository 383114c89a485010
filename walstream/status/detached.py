"""Status of a detached sink."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from walstream.errors import SINK_AGAIN
from walstream.sources.postgres.detached.detached_sink import (
    AWAY,
    DROPPED,
    DetachedSink,
)

_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DetachedStatus:
    """One of them."""

    note: DetachedSink
    retained_wal: int | None  # bytes that its copy of the slot holds; None: not known
    error: str  # why its own worker does not get on, or ""
    lost: bool = False  # its copy can send nothing any more

    @property
    def state(self) -> str:
        return "dropped" if self.note.phase == DROPPED else "detached"

    def problem(self, sink: str) -> str:
        """Return it in a line."""
        note = self.note
        since = datetime.fromtimestamp(note.since, UTC).isoformat(timespec="seconds")
        if note.phase == DROPPED:
            return (
                f"sink {sink!r} was dropped at {since}, as its on_failure says, and "
                f"gets nothing: {note.why}"
            )
        held = ""
        if self.retained_wal is not None:
            held = f", which retains {self.retained_wal / _MIB:.1f} MiB of WAL"
        said = (
            f"sink {sink!r} has been detached since {since}: {self.error or note.why}"
        )
        if note.phase != AWAY:
            return (
                f"{said}. The source's position waits until it has a copy of the slot"
            )
        if self.lost:
            return f"{said}. Its slot {note.slot!r} is lost: {SINK_AGAIN.then}"
        return f"{said}. It streams from slot {note.slot!r}{held}"
