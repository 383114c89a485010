"""Index from commit times to LSNs, stored with the position.

Commit times do not rise with the LSN: clocks are set, and commits overtake each other.
So no lookup relies on order. Each stretch of WAL keeps the latest commit time in it,
and the first stretch that has one not before a time is where the first transaction that
was not committed before it may be. Which one it is, the WAL itself says.
"""

import threading
from collections import deque
from dataclasses import dataclass
from typing import Final

from walstream.lsn import Lsn
from walstream.pipeline.state_document import StateDocument, StoredDocuments

_STRETCHES: Final = 256  # so many that are closed, about, in what `retain` keeps
_SHORTEST: Final = 8192  # bytes
_NOTED: Final = 16_384  # transactions behind the last position, one by one

Time = int
"""Microseconds since 2000-01-01 UTC, as PostgreSQL counts."""


@dataclass(slots=True)
class Stretch:
    """Transactions with a commit LSN below `end`, down to where the last one ended."""

    end: Lsn
    latest: Time | None = None  # of their commits; None: there are none

    def take(self, time: Time) -> None:
        self.latest = time if self.latest is None else max(self.latest, time)


@dataclass(frozen=True, slots=True)
class ClosedStretches:
    """All stretches but the open one, as they are stored."""

    start: Lsn
    before: Time | None
    stretches: tuple[tuple[Lsn, Time | None], ...]  # of each the end, and the latest


CLOSED: Final = StateDocument("times", ClosedStretches)
OPEN: Final = StateDocument("times.open", Stretch)
"""It is small: it is written with each position."""


class TimeIndex:
    """Commit times from `start` on."""

    def __init__(self, start: Lsn) -> None:
        self.start = start
        self.before: Time | None = None  # the latest that may lie below; None: not yet
        self.closed: list[Stretch] = []
        self.open = Stretch(start)

    @classmethod
    def of(cls, stored: StoredDocuments) -> "TimeIndex | None":
        """Return the stored index; None if none is stored."""
        kept, last = CLOSED.read(stored), OPEN.read(stored)
        if kept is None or last is None:
            return None
        index = cls(kept.start)
        index.before = kept.before
        index.closed = [Stretch(end, latest) for end, latest in kept.stretches]
        index.open = last
        return index

    @property
    def all_closed(self) -> ClosedStretches:
        """Stored form of all stretches but the open one."""
        stretches = ((stretch.end, stretch.latest) for stretch in self.closed)
        return ClosedStretches(self.start, self.before, tuple(stretches))

    def _starts(self) -> list[tuple[Lsn, Stretch]]:
        """Yield all stretches, each with its start."""
        stretches = [*self.closed, self.open]
        ends = [self.start, *(stretch.end for stretch in self.closed)]
        return list(zip(ends, stretches, strict=True))

    def reach(self, oldest: Lsn, newest: Lsn) -> tuple[Time, Time] | None:
        """Return the first and the last time that lead to an LSN in a window.

        Earlier ones are refused: what was committed since may lie below. A stretch that
        begins below does not count: which of its commits lie below is not known.
        """
        if self.before is None:
            return None
        below = [self.before]
        within: list[Time] = []
        for start, stretch in self._starts():
            if stretch.latest is not None and start < newest:
                (within if start >= oldest else below).append(stretch.latest)
        first = max(below) + 1
        return (first, max(within)) if within and max(within) >= first else None

    def look(self, time: Time, oldest: Lsn) -> Lsn:
        """Return where to search for the first commit not before a time."""
        for start, stretch in self._starts():
            latest = stretch.latest
            if start >= oldest and latest is not None and latest >= time:
                return start
        return self.open.end

    def cut(self, resume: Lsn) -> None:
        """Drop what is sent again from `resume` on.

        The stretch around it may then claim a commit that is later than all it has.
        """
        while self.closed and self.closed[-1].end >= resume:
            self.open = self.closed.pop()

    def move(self, resume: Lsn, oldest: Lsn, longest: int) -> bool:
        """End the open stretch at `resume`; return whether others changed.

        Stretches that end at or below `oldest` are dropped; one is closed when it is as
        long as `longest`.
        """
        self.open.end = resume
        begins = self.closed[-1].end if self.closed else self.start
        changed = resume - begins >= longest
        if changed:
            self.closed.append(self.open)
            self.open = Stretch(resume)
        while self.closed and self.closed[0].end <= oldest:
            gone = self.closed.pop(0)
            self.start = gone.end
            if gone.latest is not None and self.before is not None:
                self.before = max(self.before, gone.latest)
            changed = True
        return changed


class CommitTimes:
    """One stream's index: `note` runs in the loop, the rest in the writer thread."""

    def __init__(
        self,
        index: TimeIndex | None,
        *,
        resume: Lsn,
        retain: int,
        slot_start: Lsn,
    ) -> None:
        """Continue a stored index.

        `resume` is the start of the stream: an index that ends below it has a gap.
        """
        self._retain = retain
        self._slot_start = slot_start
        if index is None or not index.start <= resume <= index.open.end:
            index = TimeIndex(resume)
        index.cut(resume)
        self._index = index
        self._noted: deque[tuple[Lsn, Time]] = deque()
        self._guard = threading.Lock()
        self._unsaved = True  # more than the open stretch

    def note(self, lsn: Lsn, time: Time) -> None:
        """Note each transaction at its start, before a position beyond it.

        If no position can be stored for long, they count as one that begins with the
        first of them: a search then starts too early, never too late.
        """
        if len(self._noted) >= _NOTED:
            with self._guard:
                if self._noted:
                    lsn, latest = self._noted.pop()
                    time = max(time, latest)
        self._noted.append((lsn, time))

    def documents(self, resume: Lsn) -> dict[str, object]:
        """Return the documents of the index, to store with a position."""
        index = self._index
        for time in self._passed(resume):
            if index.before is None:
                index.before = time - 1
                self._unsaved = True
            index.open.take(time)
        oldest = max(self._slot_start, resume - self._retain)
        longest = max(_SHORTEST, self._retain // _STRETCHES)
        self._unsaved |= index.move(resume, oldest, longest)
        closed = CLOSED.entry(index.all_closed) if self._unsaved else {}
        return {**closed, **OPEN.entry(index.open)}

    def stored(self) -> None:
        """Note that all of it is on disk."""
        self._unsaved = False

    def _passed(self, resume: Lsn) -> list[Time]:
        """Remove and return the times of transactions below."""
        noted, times = self._noted, []
        with self._guard:
            while noted and noted[0][0] < resume:
                times.append(noted.popleft()[1])
        return times
