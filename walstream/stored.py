"""What the state folder says of a source: for the start table, and for a rewind."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from walstream.formats import instant
from walstream.keys import KeyHistory
from walstream.lsn import NEVER, Lsn
from walstream.ports import Position
from walstream.positions import LmdbPositions
from walstream.postgres.slot import Slot
from walstream.postgres.start import Stored
from walstream.shown import ShownLsn
from walstream.times import DOCUMENTS, TimeIndex

PUBLICATIONS: Final = "publications"
"""The document that says what they were when they were last looked at."""


_DRAINED: Final = "drained"  # where a stream ended with nothing under way


def drained(positions: LmdbPositions) -> None:
    """Keep that the stream sent nothing beyond its position."""
    if (position := positions.position()) is not None:
        positions.write({_DRAINED: position.resume})


def take_unsent(positions: LmdbPositions) -> Lsn:
    """Tell from where on nothing was sent, for once: NEVER, if that is not known."""
    place, position = positions.read(_DRAINED), positions.position()
    if place is None:
        return NEVER
    positions.write({_DRAINED: None})
    return place if position and position.resume == place else NEVER


def stored_of(positions: LmdbPositions, slot: str) -> Stored:
    """Read what the start table asks; `slot` is the one that the source names."""
    intent = positions.read("intent")
    return Stored(
        position=positions.position(),
        intent=intent is not None and intent["slot"] == slot,
        consistent_point=(intent or {}).get("consistent_point"),
    )


@dataclass(frozen=True, slots=True)
class Window:
    """From where a source can be streamed once more: any LSN between the two."""

    oldest: ShownLsn
    newest: ShownLsn  # the position
    size_bytes: int
    first_time: datetime | None = None  # of those that lead to one; null: none does
    last_time: datetime | None = None

    def holds(self, lsn: Lsn) -> bool:
        return self.oldest <= lsn <= self.newest

    def timed(self, reach: tuple[int, int] | None) -> "Window":
        """Tell the times, as the index of commit times has them."""
        first, last = map(instant.moment, reach) if reach else (None, None)
        return replace(self, first_time=first, last_time=last)


def window(positions: LmdbPositions, position: Position, slot: Slot) -> Window | None:
    """Find how far back it reaches; None: the position itself is out of reach.

    The slot sends nothing below its confirmed LSN. A server's crash may lower that, to
    where the keys of some table are forgotten: names would not be the same there.
    """
    oldest = slot.confirmed_flush_lsn or 0
    for name in positions.names("keys/"):
        history = KeyHistory.from_json(positions.read(name) or [])
        oldest = max(oldest, history.known_from)
    newest = position.resume
    if oldest > newest:
        return None
    index = time_index(positions)
    reach = index.reach(oldest, newest) if index else None
    return Window(oldest, newest, newest - oldest).timed(reach)


def time_index(positions: LmdbPositions) -> TimeIndex | None:
    """Read the index of commit times."""
    return TimeIndex.of({name: positions.read(name) for name in DOCUMENTS})
