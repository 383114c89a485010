"""Sent position: how far sinks got commits. A failover may lose the last ones.

A sink gets a commit before a standby must have it, and before the position passes it.
So a bound ahead of it is stored: in coarse steps together with the positions, and
exactly when a stream ends.
"""

from dataclasses import dataclass, replace
from typing import Final, Self

from walstream.lsn import Lsn
from walstream.pipeline.state_document import (
    StateDocument,
    StateDocuments,
    StoredDocuments,
)

_STEP: Final = 16 << 20  # bytes of WAL: so far the bound is ahead


@dataclass(frozen=True, slots=True)
class Given:
    """Stored form in a state folder."""

    timeline: int
    lsn: Lsn  # of the highest commit that was given to a sink, as far as is known
    below: Lsn  # none from here on was

    @property
    def sure(self) -> bool:
        """Return whether no commit beyond `lsn` was sent."""
        return self.below <= self.lsn + 1

    def believed(self) -> Self:
        """Take what is known for all there was, on an operator's word."""
        return replace(self, below=self.lsn + 1)

    def joined(self, other: Self) -> Self:
        """Return what both together were given.

        On another timeline the other one is older: this one's stream has seen it.
        """
        if other.timeline != self.timeline:
            return self
        lsn, below = max(self.lsn, other.lsn), max(self.below, other.below)
        return replace(self, lsn=lsn, below=below)


GIVEN: Final = StateDocument("given", Given)
GIVEN_ELSEWHERE: Final = StateDocuments("given/", Given)
"""By sink, what its own worker gave it before it came back into the stream."""


def sent_so_far(stored: StoredDocuments) -> Given | None:
    """Return how far sinks got commits, in the stream and of workers of their own."""
    found = GIVEN.read(stored)
    for other in GIVEN_ELSEWHERE.read_all(stored).values():
        found = other if found is None else found.joined(other)
    return found


class Reach:
    """That of one stream: `admits` in the loop, the others where positions are stored.

    What a stream before it may have given counts on, until this one has passed it.
    """

    def __init__(self, known: Given | None, timeline: int) -> None:
        self._timeline = timeline
        self._given = known.lsn if known else 0
        self._unsure: Lsn = 0  # a commit below it may have been given, unknown to us
        self._below: Lsn = 0  # as it is on disk, of this timeline
        if known and known.timeline == timeline:
            self._below = known.below
            self._unsure = 0 if known.sure else known.below
        self._wanted = self._given  # what is to be given next

    def admits(self, lsn: Lsn) -> bool:
        """Count a commit as sent; return False until `ahead` is on disk."""
        self._wanted = lsn
        if lsn >= self._below:
            return False
        self._given = max(self._given, lsn)
        return True

    def ahead(self, resume: Lsn) -> Given:
        """Return the document to store with this position."""
        if resume >= self._unsure:
            self._unsure = 0  # all that was below came again
        given, wanted = self._given, self._wanted
        below = max(given, wanted) + 1 + _STEP
        return Given(self._timeline, given, max(below, self._below))

    def keep(self, given: Given) -> None:
        """Note that it is on disk."""
        self._below = given.below

    def exact(self) -> Given:
        """Return the document to store when no more commits will be sent."""
        below = max(self._given + 1, self._unsure)
        return Given(self._timeline, self._given, below)
