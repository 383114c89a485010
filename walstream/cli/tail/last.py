"""The last changes of topics: read backwards from their ends, in growing steps."""

from collections import deque
from collections.abc import Callable, Mapping
from heapq import merge
from typing import Final

from walstream.cli.tail.change import Change
from walstream.cli.tail.follow import RecordReader, later_bounds
from walstream.errors import TopicLost
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.topic_reader import TopicRecord

_POLL_S: Final = 0.2
_GROWTH: Final = 8

ChangePick = Callable[[TopicRecord], Change | None]
"""Returns the change of a record, where it is wanted."""


class LastChanges:
    """Keeps the last changes of each partition, below its end at the start."""

    def __init__(
        self,
        reader: RecordReader,
        bounds: Mapping[Partition, OffsetBounds],
        count: int,
    ) -> None:
        self._reader = reader
        self._bounds = dict(bounds)
        self._count = count
        self._kept: dict[Partition, deque[Change]] = {}

    def read(
        self, pick: ChangePick, ended: Callable[[], bool] = lambda: False
    ) -> list[Change]:
        """Return the last changes that `pick` takes, by their records' times.

        Offsets that hold no such change (other tables, markers of transactions,
        records that compaction took) count for nothing: then more is read.
        """
        span = self._count
        left = {one for one, where in self._bounds.items() if _size(where)}
        while left and not ended():
            bounds = {one: self._bounds[one] for one in left}
            starts = {
                one: max(where.first, where.end - span) for one, where in bounds.items()
            }
            try:
                self._fill(starts, pick, ended)
            except TopicLost as lost:
                gone = {Partition(*one) for one in lost.partitions}
                self._bounds |= later_bounds(self._reader, self._bounds, gone, lost)
                continue
            left = {
                one
                for one, where in bounds.items()
                if starts[one] > where.first and len(self._kept[one]) < self._count
            }
            span *= _GROWTH
        merged = merge(*self._kept.values(), key=_time)
        return list(deque(merged, maxlen=self._count))

    def _fill(
        self,
        starts: Mapping[Partition, int],
        pick: ChangePick,
        ended: Callable[[], bool],
    ) -> None:
        """Read these partitions from their starts to their ends."""
        for one in starts:
            self._kept[one] = deque(maxlen=self._count)
        bounds = {one: self._bounds[one] for one in starts}
        self._reader.assign(starts)
        while not ended() and not self._reader.reached(bounds):
            for record in self._reader.poll(_POLL_S):
                one = Partition(record.topic, record.partition)
                if record.offset < bounds[one].end and (change := pick(record)):
                    self._kept[one].append(change)


def _size(bounds: OffsetBounds) -> int:
    return bounds.end - bounds.first


def _time(change: Change) -> int:
    return change.record.timestamp_ms or 0
