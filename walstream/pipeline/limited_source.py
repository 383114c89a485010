"""A slot's stream of which no more is given out than its limit lets pass.

What was read with it waits here. The slot itself is read no further meanwhile: that is
what holds the server, as when no sink has room.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, Protocol

from walstream.lsn import Lsn
from walstream.pipeline.ports import Source
from walstream.pipeline.rate_limit import RateLimit

_U64: Final = Struct("!Q").unpack_from


class SlotFrames(Source, Protocol):
    """The stream of a slot, and how far its server is."""

    @property
    def received(self) -> Lsn: ...

    @property
    def drained(self) -> bool:
        """Whether the last read took all that had come."""

    def ask(self) -> None:
        """Make the server say soon how far it is; from any thread."""

    def close(self, *, wait_s: float = 0.0) -> None:
        """End the stream; wait that long for the server to let go of the slot."""


class LimitedSource:
    """Stream of a slot that gives out what its limit lets pass."""

    def __init__(self, source: SlotFrames, limit: RateLimit) -> None:
        limit.begin()
        self._limit = limit
        self._source = source
        self._frames: Sequence[bytes] = ()
        self._next = 0  # of them, the first that was not given out
        self._given = source.received
        self.confirm = source.confirm
        self.keep_alive = source.keep_alive
        self.still_paused = source.still_paused
        self.fileno = source.fileno
        self.ask = source.ask
        self.close = source.close

    @property
    def received(self) -> Lsn:
        """How far frames were given out; the server has sent more while some wait."""
        return self._given if self._frames else self._source.received

    @property
    def drained(self) -> bool:
        """Whether nothing waits here, nor in the slot's connection."""
        return not self._frames and self._source.drained

    @property
    def holds(self) -> bool:
        """Whether frames wait here for the limit."""
        return bool(self._frames)

    def read(self, limit: int) -> Sequence[bytes]:
        """Return frames that pass; none while the limit holds. Raises as a slot."""
        if not self._frames:
            if self._limit.wait_s:
                self._source.still_paused()
                return ()
            self._given = self._source.received
            self._next = 0
            self._frames = self._source.read(limit)
        frames, first = self._frames, self._next
        end = self._limit.take(frames, first)
        if end == len(frames):
            self._frames = ()
            return frames[first:] if first else frames
        self._source.still_paused()
        if end > first:
            self._next = end
            self._given = max(self._given, _U64(frames[end - 1], 1)[0])
        return frames[first:end]
