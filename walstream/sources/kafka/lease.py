"""Lease of a relay: its records may be in flight for less time than its partitions.

A member that is frozen, or cut off from its group, loses its partitions after
session.timeout.ms to another one, which sends the same records and newer ones. What the
first still has must not come after those. So its records are given up by librdkafka
before that, which ends the membership and starts again at the group's offsets; and what
is put is bounded by what the brokers take in that time, or a slow one would never get
through. Pure: the clock is handed in.

This narrows the window and does not close it: a request that lies in the socket goes
out. Only transactions, which fence, would.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final, Self

from walstream.config import KafkaSource
from walstream.config.librdkafka import ClientProperties, whole_number
from walstream.kafka.group import session_timeout_ms

_SHARE: Final = 0.75  # of the session
_FROZEN_SHARE: Final = 0.5
_LINGERS: Final = ("linger.ms", "queue.buffering.max.ms")
_TIMEOUTS: Final = frozenset({"message.timeout.ms", "delivery.timeout.ms"})
_HORIZON: Final = 0.25  # of that time, for what is under way
_FLOOR: Final = 1 << 20  # bytes under way while no rate is known
_RATE_OVER_S: Final = 1.0
_MARK_EVERY_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class PartitionLease:
    """Times of one membership."""

    session_ms: int

    @classmethod
    def of(cls, source: KafkaSource) -> Self:
        """Take the session of a source's consumer."""
        return cls(session_timeout_ms(source.consumer, source.group))

    @property
    def give_up_s(self) -> float:
        """After what time a record that was not taken is given up."""
        return self.session_ms * _SHARE / 1000

    @property
    def frozen_after_ms(self) -> int:
        """For how long a member may stand still and surely be one after it."""
        return int(self.session_ms * _FROZEN_SHARE)

    def properties(self, given: ClientProperties) -> dict[str, int]:
        """Return what the producer needs beside the operator's properties.

        librdkafka refuses a time-out that is shorter than linger.ms.
        """
        if given.keys() & _TIMEOUTS:
            return {}
        linger_ms = max([whole_number(given, key) for key in _LINGERS])
        return {"message.timeout.ms": max(int(self.give_up_s * 1000), linger_ms + 1000)}


class RateWindow:
    """Limit of bytes in flight, by how fast records were taken recently.

    A broker that suddenly becomes slow may hold what a fast one was given for longer
    than the leash allows: it is given up once, and the next membership begins small.
    """

    def __init__(self, give_up_s: float) -> None:
        self._horizon_s = give_up_s * _HORIZON
        self._marks: deque[tuple[float, int]] = deque()  # when, and how many by then
        self._size = 0.0  # bytes of a record, of late

    def put(self, size: int) -> None:
        """Take in the size of a record."""
        self._size += (size - self._size) / (64 if self._size else 1)

    def quota(self, now: float, delivered: int, in_flight: int) -> float:
        """Return how many more bytes may be put; `now` and `delivered` only grow."""
        marks = self._marks
        if not marks or now - marks[-1][0] >= _MARK_EVERY_S:
            marks.append((now, delivered))
        while len(marks) > 1 and now - marks[1][0] >= _RATE_OVER_S:
            marks.popleft()
        since, before = marks[0]
        rate = (delivered - before) / max(now - since, _RATE_OVER_S)
        return max(_FLOOR, rate * self._size * self._horizon_s) - in_flight * self._size
