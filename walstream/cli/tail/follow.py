"""Follows topics: from now or from the beginning, to their end or for as long as asked.

Topics and partitions that come later are read from their beginning, since all in them
came after the start; that a topic is gone is seen within seconds.
"""

import os
import select
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from walstream.cli.tail.filter import matching, require
from walstream.errors import TopicLost, Transient
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.topic_reader import TopicRecord

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_S: Final = 1.0


class Ending:
    """Ends this process with code 0, by itself where it is held up."""

    def __init__(self, output: int) -> None:
        """Take over the signals, and watch a file descriptor."""
        self._asked = threading.Event()
        self._output = select.poll()
        self._output.register(output, 0)  # errors and hang-ups are always told
        # what is ignored stays so: under nohup a SIGHUP ends nothing
        heard = [one for one in _SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]
        signal.pthread_sigmask(signal.SIG_BLOCK, heard)
        threading.Thread(target=self._wait, args=[heard], daemon=True).start()

    def __call__(self) -> bool:
        return self._asked.is_set() or bool(self._output.poll(0))

    def _wait(self, signals: list[signal.Signals]) -> None:
        signal.sigwait(signals)
        self._asked.set()
        time.sleep(_GRACE_S)
        os._exit(0)


_POLL_S: Final = 0.2  # how late an end may be noticed
_LOOK_S: Final = 2.0  # how late a new topic may be
_PATIENCE_S: Final = 60.0  # with an outage, of who reads to the end


@dataclass(frozen=True, slots=True)
class Span:
    """The part of the topics that is read."""

    from_beginning: bool = False  # else from now
    until_end: bool = False  # as it is at the start; else for ever
    since: datetime | None = None  # of records, in place of the beginning
    last: int | None = None  # so many of what is there, and the end

    def __str__(self) -> str:
        if self.last is not None:
            return f"the last {self.last:,}"
        begin = "from the beginning" if self.from_beginning else "from now"
        if self.since is not None:
            begin = f"from {self.since.isoformat(timespec='seconds')}"
        return f"{begin} until the end" if self.until_end else f"{begin}; Ctrl-C ends"


class RecordReader(Protocol):
    """The interface of a TopicReader."""

    def topics(self) -> Mapping[str, int]: ...

    def bounds(self, topics: Iterable[str]) -> dict[Partition, OffsetBounds]: ...

    def since(
        self, partitions: Iterable[Partition], timestamp_ms: int
    ) -> dict[Partition, int | None]: ...

    def assign(self, offsets: Mapping[Partition, int]) -> None: ...

    def add(self, offsets: Mapping[Partition, int]) -> None: ...

    def drop(self, partitions: Collection[Partition]) -> None: ...

    def poll(self, timeout_s: float) -> list[TopicRecord]: ...

    def reached(self, bounds: Mapping[Partition, OffsetBounds]) -> bool: ...


class Follower:
    def __init__(
        self,
        reader: RecordReader,
        wanted: Sequence[str],
        span: Span,
        tell: Callable[[str], None],
    ) -> None:
        """`wanted` are names and patterns of topics; `tell` hears what is watched."""
        self._reader = reader
        self._wanted = wanted
        self._span = span
        self._tell = tell
        self._topics: dict[str, int] = {}  # with the partitions that are read
        self._bounds: dict[Partition, OffsetBounds] = {}  # at the start
        # of partitions that are read from their past, and gave nothing yet
        self._fresh: dict[Partition, OffsetBounds] = {}
        self._losses: list[TopicLost] = []  # that are to be looked into
        self._look_at = 0.0
        self._away_since: float | None = None
        self._said: set[str] = set()  # what passes, of single partitions
        self._too_early: set[Partition] = set()  # those without a record of `since`
        self._since_ms: int | None = None
        if span.since is not None:
            self._since_ms = int(span.since.timestamp() * 1000)

    def begin(self, *, may_wait: bool = False) -> None:
        """Find where to begin. `may_wait`: topics that are not there may come.

        Raises ConfigError for a name that means no topic.
        """
        existing = self._reader.topics()
        if not may_wait:
            require(self._wanted, existing)
        topics = matching(self._wanted, existing)
        self._bounds = self._reader.bounds(sorted(topics))
        starts = self._starts()
        self._reader.assign(starts)
        if self._span.from_beginning or self._since_ms is not None:
            self._fresh = {
                one: OffsetBounds(starts[one], where.end)
                for one, where in self._bounds.items()
                if starts[one] < where.end
            }
        self._topics = {topic: existing[topic] for topic in topics}
        partitions = _count(len(self._bounds), "partition")
        self._tell(f"{_count(len(topics), 'topic')}, {partitions}, {self._span}")
        if self._since_ms is not None and self._since_ms > time.time() * 1000:
            self._tell("that time is in the future: nothing older is shown")

    @property
    def bounds(self) -> Mapping[Partition, OffsetBounds]:
        """Where the partitions began and ended at the start."""
        return self._bounds

    def _starts(self) -> dict[Partition, int]:
        """Return the offset from which each partition is read."""
        if self._since_ms is None:
            first = self._span.from_beginning
            return {
                partition: bounds.first if first else bounds.end
                for partition, bounds in self._bounds.items()
            }
        found = self._reader.since(self._bounds, self._since_ms)
        self._too_early = {one for one, at in found.items() if at is None}
        return {
            partition: bounds.end if (at := found[partition]) is None else at
            for partition, bounds in self._bounds.items()
        }

    def batches(self, ended: Callable[[], bool]) -> Iterator[list[TopicRecord]]:
        """Yield records as they arrive, in each partition in its order."""
        self._look_at = time.monotonic() + _LOOK_S
        while not ended() and not self._reached():
            if records := [one for one in self._poll() if self._is_wanted(one)]:
                yield records
            if time.monotonic() >= self._look_at:
                self._look()
                self._look_at = time.monotonic() + _LOOK_S

    def _reached(self) -> bool:
        return self._span.until_end and self._reader.reached(self._bounds)

    def _is_wanted(self, record: TopicRecord) -> bool:
        one = Partition(record.topic, record.partition)
        if self._span.until_end and record.offset >= self._bounds[one].end:
            return False
        return one not in self._too_early or self._is_late(one, record.timestamp_ms)

    def _is_late(self, one: Partition, time_ms: int | None) -> bool:
        """Return whether a partition's first record of `since` has come."""
        if time_ms is not None and time_ms < (self._since_ms or 0):
            return False
        self._too_early.discard(one)
        return True

    def _poll(self) -> list[TopicRecord]:
        try:
            records = self._reader.poll(_POLL_S)
        except TopicLost as lost:
            self._losses.append(lost)
            self._look_at = 0.0  # now: it may say it better
            return []
        except Transient as error:
            if self._span.until_end:
                raise
            self._say_once(str(error.args[0]))
            return []
        if self._fresh:
            for one in {Partition(each.topic, each.partition) for each in records}:
                self._fresh.pop(one, None)
        return records

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._tell(f"{text}; continuing")

    def _look(self) -> None:
        """See what came, what went and what was lost; wait while Kafka is away."""
        try:
            existing = self._reader.topics()
            for topic, partitions in list(self._topics.items()):
                if existing.get(topic, 0) < partitions:
                    self._lose(topic)
            while self._losses:
                self._begin_later(self._losses[-1])
                self._losses.pop()
            if not self._span.until_end:
                self._find(existing)
        except Transient as error:
            self._wait_for_kafka(error)
            return
        if self._away_since is not None:
            self._away_since = None
            self._tell("Kafka answers again")

    def _wait_for_kafka(self, error: Transient) -> None:
        """Report an outage once; with `until_end`, raise it after a while."""
        now = time.monotonic()
        if self._away_since is None:
            self._away_since = now
            self._tell(f"{error.args[0]}; waiting until it answers")
        if self._span.until_end and now - self._away_since > _PATIENCE_S:
            raise error

    def _begin_later(self, lost: TopicLost) -> None:
        """Go on behind what was deleted before anything was read; else raise."""
        named = [Partition(*one) for one in lost.partitions]
        gone = {one for one in named if self._is_read(one)}
        if named and not gone:
            return
        later = later_bounds(self._reader, self._fresh, gone, lost)
        self._fresh |= later
        self._reader.drop(later)
        self._reader.add({one: where.first for one, where in later.items()})

    def _is_read(self, one: Partition) -> bool:
        """Return whether anything of a partition is still waited for."""
        if one.number >= self._topics.get(one.topic, 0):
            return False  # its topic was deleted
        if not self._span.until_end:
            return True
        return not self._reader.reached({one: self._bounds[one]})

    def _lose(self, topic: str) -> None:
        if self._span.until_end or topic in self._wanted:
            raise TopicLost(f"topic {topic!r} was deleted while it was read")
        lost = [Partition(topic, one) for one in range(self._topics.pop(topic))]
        self._reader.drop(lost)
        for one in lost:
            self._fresh.pop(one, None)
        self._tell(f"topic {topic} was deleted")

    def _find(self, existing: Mapping[str, int]) -> None:
        fresh = {
            topic
            for topic in matching(self._wanted, existing)
            if existing[topic] > self._topics.get(topic, 0)
        }
        for topic in sorted(fresh):
            try:
                bounds = self._reader.bounds([topic])
            except (TopicLost, Transient):
                continue  # the next look asks again
            known = self._topics.get(topic, 0)
            added = {
                partition: where.first
                for partition, where in bounds.items()
                if partition.number >= known
            }
            self._reader.add(added)
            if self._since_ms is not None:
                self._too_early |= added.keys()
            self._topics[topic] = known + len(added)
            self._tell(f"topic {topic} has {_count(len(added), 'new partition')}")


def later_bounds(
    reader: RecordReader,
    bounds: Mapping[Partition, OffsetBounds],
    gone: Collection[Partition],
    lost: TopicLost,
) -> dict[Partition, OffsetBounds]:
    """Return the bounds of lost partitions whose first records retention deleted.

    Raises `lost` where that is not why, for one of them. The ends stay, and a partition
    that is empty now may begin behind its end.
    """
    if not gone or not bounds.keys() >= set(gone):
        raise lost
    now = reader.bounds(sorted({one.topic for one in gone}))
    later: dict[Partition, OffsetBounds] = {}
    for one in gone:
        where, found = bounds[one], now.get(one)
        if found is None or found.end < where.end or found.first <= where.first:
            raise lost  # another topic has its name
        later[one] = OffsetBounds(found.first, where.end)
    return later


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
