"""What the state folder says of a source: for the start table, and for a rewind."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from walstream.formats import timestamp
from walstream.lsn import Lsn
from walstream.pipeline.commit_times import DOCUMENTS, TimeIndex
from walstream.pipeline.ports import Position
from walstream.pipeline.root_key import ROOTS, RootKeys
from walstream.pipeline.row_key import KeyHistory
from walstream.pipeline.sent_position import GIVEN, Given
from walstream.postgres.slot import Slot
from walstream.postgres.start_table import StoredState
from walstream.state.store import LmdbPositions
from walstream.telemetry.json_types import ShownLsn

PUBLICATIONS: Final = "publications"
"""The document that says what they were when they were last looked at."""


_SENT: Final = "sent"  # what bounds all that was ever sent


def drained(positions: LmdbPositions) -> None:
    """Keep that the stream sent nothing beyond its position."""
    if (position := positions.position()) is not None:
        sent = positions.read(_SENT) or {}
        positions.write({_SENT: {**sent, "drained": position.resume}})


def take_unsent(positions: LmdbPositions, flush_lsn: Lsn) -> Lsn:
    """Return from where on nothing was ever sent, before a stream begins.

    Where the last one ended, if nothing was under way then, and not below where an
    earlier one may have been, before a rewind. Else where the server is.
    """
    sent, position = positions.read(_SENT) or {}, positions.position()
    unsent = flush_lsn
    if position is not None and sent.get("drained") == position.resume:
        unsent = min(flush_lsn, max(position.resume, sent.get("below", 0)))
    positions.write({_SENT: {"below": unsent}})
    return unsent


def stored_of(positions: LmdbPositions, slot: str) -> StoredState:
    """Read what the start table asks; `slot` is the one that the source names."""
    intent = positions.read("intent")
    return StoredState(
        position=positions.position(),
        intent=intent is not None and intent["slot"] == slot,
        consistent_point=(intent or {}).get("consistent_point"),
        given=given_of(positions),
        slot=slot,
    )


def given_of(positions: LmdbPositions) -> Given | None:
    """Return how far sinks were given commits, as far as is known."""
    return Given.of(positions.read(GIVEN))


@dataclass(frozen=True, slots=True)
class ReplayWindow:
    """From where a source can be streamed once more: any LSN between the two."""

    oldest: ShownLsn
    newest: ShownLsn  # the position
    size_bytes: int
    first_time: datetime | None = None  # of those that lead to one; null: none does
    last_time: datetime | None = None

    def holds(self, lsn: Lsn) -> bool:
        return self.oldest <= lsn <= self.newest

    def timed(self, reach: tuple[int, int] | None) -> "ReplayWindow":
        """Return the times, as the index of commit times has them."""
        first, last = map(timestamp.moment, reach) if reach else (None, None)
        return replace(self, first_time=first, last_time=last)


def window(
    positions: LmdbPositions, position: Position, slot: Slot
) -> ReplayWindow | None:
    """Find how far back it reaches; None: the position itself is out of reach.

    The slot sends nothing below its confirmed LSN. A server's crash may lower that, to
    where the keys of some table are forgotten: names would not be the same there.
    """
    oldest = slot.confirmed_flush_lsn or 0
    for name in positions.names("keys/"):
        history = KeyHistory.from_json(positions.read(name) or [])
        oldest = max(oldest, history.known_from)
    for name in positions.names(ROOTS):
        root = RootKeys.from_json(positions.read(name) or [])
        oldest = max(oldest, root.known_from)
    newest = position.resume
    if oldest > newest:
        return None
    index = time_index(positions)
    reach = index.reach(oldest, newest) if index else None
    return ReplayWindow(oldest, newest, newest - oldest).timed(reach)


def time_index(positions: LmdbPositions) -> TimeIndex | None:
    """Read the index of commit times."""
    return TimeIndex.of({name: positions.read(name) for name in DOCUMENTS})
