"""Ledger of offsets: which one may be stored in the group. Pure: no clock, no I/O.

What was read at one time is a portion: its records are counted over all sinks, and
delivered in any order. The front of the queue decides, so that an offset is stored only
when everything below it was delivered by every sink, or passed over on purpose.
"""

from collections import deque

from walstream.pipeline.ledger import (
    Counted,
)
from walstream.sources.kafka.offset_metadata import NOTHING_NOTED, OffsetMetadata


class Portion(Counted):
    """Records of one partition that were read together, as far as they were sent."""

    __slots__ = ("closed", "end", "note", "records")

    def __init__(self, end: int, note: OffsetMetadata) -> None:
        super().__init__()
        self.end = end  # the offset behind the last that was sent or passed over
        self.note = note  # what is known there
        self.records = 0
        self.closed = False  # no more will be added


class Offsets:
    """One partition, for as long as it is ours."""

    def __init__(self, note: OffsetMetadata = NOTHING_NOTED) -> None:
        self.note = note  # what is known behind the last record that was sent
        self.reached: int | None = None  # all below it is done; None: nothing was read
        self.reached_note = note
        self.stored: int | None = None  # what the group was told
        self.delivered = 0  # records, since the last `take_delivered`
        self._queue: deque[Portion] = deque()

    def begin(self, offset: int) -> Portion:
        """Open a portion whose first record has this offset; the last one is closed."""
        self.close()
        portion = Portion(offset, self.note)
        self._queue.append(portion)
        return portion

    def sent(self, portion: Portion, offset: int, note: OffsetMetadata) -> None:
        """Note that every sink has this record, or passes over it."""
        portion.end = offset + 1
        portion.note = self.note = note
        portion.records += 1

    def close(self) -> None:
        """Add nothing more to the last portion."""
        if self._queue:
            self._queue[-1].closed = True

    def advance(self) -> int | None:
        """Drop what is delivered; give the offset that may be stored."""
        queue = self._queue
        while queue and not queue[0].undelivered:
            front = queue[0]
            self.reached, self.reached_note = front.end, front.note
            self.delivered += front.records
            front.records = 0
            if not front.closed:
                break
            queue.popleft()
        return self.reached

    def pass_over(self, position: int) -> None:
        """Take what lies below it, and never comes as a record, for done.

        Markers of transactions take offsets too. All records below were sent, or are
        passed over on purpose.
        """
        if self._queue:
            last = self._queue[-1]
            last.end = max(last.end, position)
        elif position > max(self.reached or 0, self.stored or 0):
            self.reached, self.reached_note = position, self.note

    @property
    def undelivered(self) -> int:
        return sum(portion.undelivered for portion in self._queue)

    @property
    def due(self) -> int | None:
        """Return the offset that the group was not told yet; None: it knows."""
        reached = self.advance()
        return None if reached == self.stored else reached

    def take_delivered(self) -> int:
        """Return how many records were delivered since this was asked last."""
        found, self.delivered = self.delivered, 0
        return found
