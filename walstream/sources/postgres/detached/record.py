"""What the source's state says of each sink that is not in its stream.

copying   the slot is being copied; the source's own position covers the sink still
away      a worker of its own streams to the sink, from the copy
back      it is in the source's stream again; the copy is to be dropped
dropped   it was given up, as `on_failure` says: it gets nothing any more
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from walstream.lsn import Lsn

COPYING, AWAY, BACK, DROPPED = "copying", "away", "back", "dropped"
_NOTE: Final = "away/"
_JOIN: Final = "join/"
_ENDED: Final = "ended"


class DetachedDocuments(Protocol):
    """What is read of the state."""

    def read(self, name: str) -> Any | None: ...

    def names(self, prefix: str) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class DetachedSink:
    """How it is with one sink."""

    phase: str
    slot: str  # the copy
    since: float  # unix seconds
    why: str
    resume: Lsn  # from where somebody else goes on, or nobody


def notes_of(positions: DetachedDocuments) -> dict[str, DetachedSink]:
    """Read all of a source's, by sink."""
    found = {}
    for name in positions.names(_NOTE):
        if (document := positions.read(name)) is not None:
            found[name.removeprefix(_NOTE)] = DetachedSink(**document)
    return found


def note_of(positions: DetachedDocuments, sink: str) -> DetachedSink | None:
    """Read a sink's; None: it is in the stream."""
    document = positions.read(_NOTE + sink)
    return None if document is None else DetachedSink(**document)


def document(sink: str, note: DetachedSink | None) -> dict[str, Any]:
    """Write it down; None forgets it."""
    return {_NOTE + sink: None if note is None else asdict(note)}


def join_document(sink: str, place: Lsn | None) -> Mapping[str, Any]:
    """Write down from where the source's stream sends to a sink; None: not yet."""
    return {_JOIN + sink: None if place is None else {"at": place}}


def joins(positions: DetachedDocuments) -> list[str]:
    """Name the sinks that were on their way back."""
    return [name.removeprefix(_JOIN) for name in positions.names(_JOIN)]


def join_of(positions: DetachedDocuments, sink: str) -> Lsn | None:
    """Read up to where the other worker streams."""
    found: Mapping[str, Lsn] | None = positions.read(_JOIN + sink)
    return None if found is None else found["at"]


def ended_document(place: Lsn | None) -> Mapping[str, Any]:
    """Write down, in the sink's own state, that all below is delivered, and no more."""
    return {_ENDED: None if place is None else {"at": place}}


def ended_of(positions: DetachedDocuments) -> Lsn | None:
    """Read where a sink's own worker ended; None: it did not, or goes on."""
    found: Mapping[str, Lsn] | None = positions.read(_ENDED)
    return None if found is None else found["at"]


def folder_of(source_folder: Path, sink: str) -> Path:
    """Return where the positions of a sink are that is away."""
    return source_folder / "away" / sink
