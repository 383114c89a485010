"""A topic, as a sink found it, and what of its records changes seldom."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from walstream.kafka.last_record import DeliveredRecords, TopicTails
from walstream.lsn import Lsn
from walstream.op import EPOCH_S, ReplicationOp
from walstream.records.oversize import TooLarge
from walstream.records.record_size import Headers
from walstream.telemetry import runtime

_NEVER: Final = -(1 << 62)  # no commit time
_ELSEWHERE: Final = _NEVER + 1  # of no record of this producer
_LAYOUT: Final = "walstream-layout"
_ERA: Final = "walstream-era"
_ERA_EVERY: Final = 1000  # records of a partition, where they are spread evenly
_NO_ERA: Final = 1 << 60


@dataclass(slots=True, eq=False, init=False)
class Topic:
    """A topic as it was found; `partitions` stays as it was at start."""

    name: str
    identity: str  # the broker's id of this very topic
    partitions: int
    limit: int  # max.message.bytes, or less where brokers take no such request
    limit_before: int  # the largest of before, where another one was found since
    retention_ms: int  # -1: for ever
    advice: str  # what takes a larger record; "": max.message.bytes
    unwritten: set[int]  # partitions new to this producer
    unproven: set[int]  # those of which no broker acknowledged a record of it lately
    proving: set[int]  # those of these where its first record is on its way
    stamped: int  # the commit time that was last turned into stamp_ms
    stamp_ms: int
    layout: int  # see `kept`
    tails: TopicTails | None  # what it has already; None: nothing that comes again
    _standing: Headers | None  # of every record
    _era: Headers  # of a first record, too
    _until_era: int  # records until it is told again
    _time: Callable[[], float]

    def __init__(  # noqa: PLR0913, PLR0917 - what was found of it
        self,
        name: str,
        identity: str,
        partitions: int,
        limit: int,
        retention_ms: int = -1,
        advice: str = "",
    ) -> None:
        self.name = name
        self.identity = identity
        self.partitions = partitions
        self.limit = limit
        self.limit_before = 0
        self.retention_ms = retention_ms
        self.advice = advice
        self.unwritten = set(range(partitions))
        self.unproven = set(range(partitions))
        self.proving = set()
        self.stamped = _NEVER
        self.stamp_ms = 0
        self.layout = 1
        self.tails: TopicTails | None = None
        self._standing: Headers | None = None
        self._era: Headers = []
        self._until_era = _NO_ERA
        self._time = runtime.current().time

    def __reduce__(self) -> tuple[Callable[..., "Topic"], tuple[object, ...]]:
        """Go to Spark's processes, whose producers have written nothing yet.

        A compiled class does not do that by itself.
        """
        found = self.name, self.identity, self.partitions
        more = self.limit, self.retention_ms, self.advice, self.layout
        return _again, (*found, *more)

    def take_in(self, now: "Topic") -> None:
        """Note what was found of it later."""
        self.retention_ms = now.retention_ms
        self.advice = now.advice
        if self.limit != now.limit:
            self.tails = None  # under the other one a record may have been parked
            self.limit_before = max(self.limit_before, self.limit)
            self.limit = now.limit

    def has_narrowed(self, limit: int) -> bool:
        """Return whether this limit is below one under which records were sent."""
        return limit < max(self.limit, self.limit_before)

    def too_large(self, op: ReplicationOp, key: bytes, size: int) -> TooLarge:
        """Return of a record of this many bytes that it takes none such."""
        return TooLarge(op, key, size, self.name, self.limit, self.advice)

    def timestamp_ms(self, commit_time: int, now_ms: int) -> int:
        """Return the commit time, held where Kafka neither deletes nor refuses it.

        now_ms may be a little old: a commit after it is held against the clock itself.
        One that is far ahead keeps its time: where our clock is behind, Kafka would
        take the record for old and delete it; where the server's is ahead, Kafka
        refuses it, and nothing is lost.
        """
        if commit_time != self.stamped:
            timestamp = commit_time // 1000 + EPOCH_S * 1000
            if timestamp > now_ms:
                now_ms = int(self._time() * 1000)
                behind_ms = timestamp - now_ms
                if self.retention_ms <= 0 or behind_ms <= self.retention_ms // 4:
                    timestamp = min(timestamp, now_ms)
            if self.retention_ms > 0:
                timestamp = max(timestamp, now_ms - self.retention_ms // 2)
            self.stamped = commit_time
            self.stamp_ms = timestamp
        return self.stamp_ms

    def was_stamped(self) -> bool:
        """Return, once for each, that records were sent to it since the last look."""
        stamped = self.stamped != _NEVER
        self.stamped = _NEVER  # the next record's time is found anew
        return stamped

    def doubt(self) -> None:
        """Let the next record in each partition be acknowledged before others.

        Brokers forget a producer that sends nothing to a partition for long.
        """
        self.unproven.update(range(self.partitions))

    def written(self) -> None:
        """Note that records were sent to it by another producer of this source."""
        self.stamped = _ELSEWHERE

    def lay_out(self, layout: int) -> None:
        """Make each record tell the layout, where keys moved before."""
        self.layout = layout
        self._standing = [*layout_headers(layout)] or None

    def tell_era(self, rules: str) -> None:
        """Let records tell now and then by which rules they are sent."""
        self._era = [(_ERA, rules.encode())]
        self._until_era = _ERA_EVERY * self.partitions

    def has(
        self,
        delivered: DeliveredRecords,
        partition: int,
        op: ReplicationOp,
        value: bytes | None,
    ) -> bool:
        """Return whether a partition has a record already: it is left out then.

        Raises Restart where it has something else.
        """
        tails = self.tails
        if tails is None:
            return False
        found = delivered.has(tails, partition, op, value)
        if not tails.tails:
            self.tails = None
        return found

    def end_tails(self, until: Lsn) -> None:
        """Leave out nothing by last records from this LSN on."""
        if self.tails is not None:
            self.tails.end_at(until)

    def begins(self, partition: int) -> bool:
        """Return, once for each, that this producer wrote nothing there before."""
        if partition not in self.unwritten:
            return False
        self.unwritten.discard(partition)
        return True

    def headers(self, partition: int, first: Headers) -> Headers | None:
        """Return a record's headers; `first` are of this producer's first one there.

        Later ones have them again now and then, where the era is told.
        """
        self._until_era -= 1
        if self._until_era < 0:
            self._until_era = _ERA_EVERY * self.partitions
            self.unwritten.update(range(self.partitions))
        if partition not in self.unwritten:
            return self._standing
        self.unwritten.discard(partition)
        return [*first, *self._era, *(self._standing or [])]


def layout_headers(layout: int) -> tuple[tuple[str, bytes], ...]:
    """Make the header of each record, since any may be the first that is left."""
    return ((_LAYOUT, str(layout).encode()),) if layout > 1 else ()


def _again(*found: Any) -> Topic:
    *shape, layout = found
    topic = Topic(*shape)
    topic.lay_out(layout)
    return topic
