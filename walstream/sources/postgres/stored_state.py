"""Stored state of a source: for the start table, and for a rewind."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from walstream.formats import timestamp
from walstream.lsn import Lsn
from walstream.pipeline.commit_times import TimeIndex
from walstream.pipeline.ports import Position
from walstream.pipeline.root_key import ROOTS, RootKeys
from walstream.pipeline.row_key import KEYS, KeyHistory
from walstream.pipeline.sent_position import sent_so_far
from walstream.pipeline.state_document import StateDocument
from walstream.postgres.slot import Slot
from walstream.postgres.start_table import StoredState
from walstream.state.store import LmdbStore
from walstream.telemetry.json_types import ShownLsn


@dataclass(frozen=True, slots=True)
class SlotIntent:
    """A slot that a first start creates."""

    slot: str
    consistent_point: Lsn | None = None  # None: it was not created yet
    system_identifier: int = 0  # of its server; 0: an older walstream noted none
    database: str = ""

    @property
    def origin(self) -> str:
        """What a server's is, where it was noted."""
        return (
            f"{self.system_identifier}/{self.database}"
            if self.system_identifier
            else ""
        )


@dataclass(frozen=True, slots=True)
class SentBounds:
    """Bound of everything that was ever sent."""

    below: Lsn = 0  # an earlier stream sent nothing from here on
    drained: Lsn | None = None  # the position beyond which the last one sent nothing


INTENT: Final = StateDocument("intent", SlotIntent)
_SENT: Final = StateDocument("sent", SentBounds)


def drained(positions: LmdbStore) -> None:
    """Keep that the stream sent nothing beyond its position."""
    if (position := positions.position()) is not None:
        sent = _SENT.read(positions) or SentBounds()
        positions.write(_SENT.entry(replace(sent, drained=position.resume)))


def sent_below(positions: LmdbStore, lsn: Lsn) -> dict[str, object]:
    """Return the entry to write when a sink comes back, whose worker sent so far.

    It may be beyond where the stream itself stops, and says that it is drained.
    """
    sent = _SENT.read(positions) or SentBounds()
    return _SENT.entry(replace(sent, below=max(sent.below, lsn)))


def may_repeat(positions: LmdbStore) -> bool:
    """Return whether what comes next may have been sent, before a stream begins.

    So it is where the last one ended before it came to where an earlier one, which was
    killed, may have been.
    """
    sent, position = _SENT.read(positions), positions.position()
    if position is None:
        return True  # the state was lost
    if sent is None or sent.drained != position.resume:
        return True
    return sent.below > position.resume


def take_unsent(positions: LmdbStore, flush_lsn: Lsn) -> Lsn:
    """Return from where on nothing was ever sent, before a stream begins.

    Where the last one ended, if nothing was under way then, and not below where an
    earlier one may have been, before a rewind. Else where the server is.
    """
    sent, position = _SENT.read(positions) or SentBounds(), positions.position()
    unsent = flush_lsn
    if position is not None and sent.drained == position.resume:
        unsent = min(flush_lsn, max(position.resume, sent.below))
    positions.write(_SENT.entry(SentBounds(unsent)))
    return unsent


def stored_of(positions: LmdbStore, slot: str) -> StoredState:
    """Read what the start table asks; `slot` is the one that the source names."""
    intent = INTENT.read(positions)
    return StoredState(
        position=positions.position(),
        intent=intent is not None and intent.slot == slot,
        origin=intent.origin if intent else "",
        consistent_point=intent.consistent_point if intent else None,
        given=sent_so_far(positions),
        slot=slot,
    )


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


def window(positions: LmdbStore, position: Position, slot: Slot) -> ReplayWindow | None:
    """Find how far back it reaches; None: the position itself is out of reach.

    The slot sends nothing below its confirmed LSN. A server's crash may lower that, to
    where the keys of some table are forgotten: names would not be the same there.
    """
    oldest = slot.confirmed_flush_lsn or 0
    for table in KEYS.keys(positions):
        history = KeyHistory(KEYS.of(table).read(positions) or ())
        oldest = max(oldest, history.known_from)
    for oid in ROOTS.keys(positions):
        root = RootKeys(ROOTS.of(oid).read(positions) or ())
        oldest = max(oldest, root.known_from)
    newest = position.resume
    if oldest > newest:
        return None
    index = TimeIndex.of(positions)
    reach = index.reach(oldest, newest) if index else None
    return ReplayWindow(oldest, newest, newest - oldest).timed(reach)
