"""The last record of a partition, by which a stream that begins again leaves some out.

A producer's records lie in a partition in the order of their names, without a gap. So
of those that a stream would put there, all up to the last one's name are there already,
as long as both streams would put the same there. Pure: no clock, no I/O.

Nothing of that is taken for granted: a server that was set back writes other
transactions under the same LSNs. The position stays before what was left out, until the
stream met the last record itself, with its commit time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from walstream.errors import Restart
from walstream.lsn import NEVER, Lsn, show
from walstream.op import EPOCH_S, ReplicationOp
from walstream.telemetry.meter import SinkMeter

_MADE: Final = b'"ts_ms":'
_CLOCKS_MS: Final = 5_000  # by so much a server's clock may be ahead of ours


def digest(value: bytes | None, *, exact: bool = False, ending: int = 0) -> bytes:
    """Return what stands for a record's value.

    Of one that is `exact`, an envelope, without its end: when it was made. Of others
    without so many bytes as the `ending` has.
    """
    found = value or b""
    if ending:
        found = found[:-ending]
    if exact and (end := found.rfind(_MADE)) >= 0:
        found = found[:end]
    return blake2b(found, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class LastRecord:
    """The last record of the stream in a partition."""

    lsn: Lsn
    seq_id: int
    commit_ms: int  # since 1970 UTC
    exact: bool  # else it is the record's own time, which is never of the future
    value: bytes | None  # its digest; None: of this name there is a tombstone alone
    buried: bool = False  # is there a tombstone of this name?
    xid: int = 0  # 0: it is not told
    ending: int = 0  # bytes at the value's end that tell when it was made

    def has(self, value: bytes | None) -> bool:
        """Return whether a record of this name is there, too."""
        return self.buried if value is None else self.value is not None

    def is_of(self, op: ReplicationOp, value: bytes | None) -> bool:
        """Return whether an op of this name is the one, and of the same transaction."""
        if self.xid and self.xid != op.xid:
            return False
        behind_ms = op.commit_time // 1000 + EPOCH_S * 1000 - self.commit_ms
        same = self.value is None or self.value == digest(
            value, exact=self.exact, ending=self.ending
        )
        if self.exact:
            return same and not behind_ms
        return same and 0 <= behind_ms <= _CLOCKS_MS


class _Tail:
    """The last record of one partition, and how far a stream has come to it."""

    __slots__ = ("first", "last", "met", "partition")

    def __init__(self, partition: int, last: LastRecord) -> None:
        self.partition = partition
        self.last = last
        self.first: Lsn = NEVER  # the first transaction that was left out in part
        self.met = False


class TopicTails:
    """Those of one topic's partitions."""

    def __init__(self, topic: str, last: Mapping[int, LastRecord]) -> None:
        self.topic = topic
        self.tails = {one: _Tail(one, found) for one, found in last.items()}
        self.highest = max((found.lsn for found in last.values()), default=0)

    def end_at(self, until: Lsn) -> None:
        """Forget those that a stream which ends there does not meet.

        Only before anything is sent.
        """
        for one, tail in list(self.tails.items()):
            if tail.last.lsn >= until:
                del self.tails[one]


class DeliveredRecords:
    """Records that one sink leaves out; called by its loop alone."""

    def __init__(
        self,
        sink: str,
        meter: SinkMeter,
        disown: Callable[[], None] = lambda: None,
    ) -> None:
        """Call `disown` where the records are of another history, before Restart.

        The next stream is not to leave out anything by them.
        """
        self._sink = sink
        self._meter = meter
        self._disown = disown
        self._unproven: list[tuple[str, _Tail]] = []  # with their topics

    def has(
        self,
        topic: TopicTails,
        partition: int,
        op: ReplicationOp,
        value: bytes | None,
    ) -> bool:
        """Return whether a partition has this record of an op: leave it out then.

        Raises Restart where its last record cannot be of this stream.
        """
        if op.snapshot:
            return False
        if op.lsn > topic.highest:
            for left in list(topic.tails.values()):
                self._pass(topic, left)
        tail = topic.tails.get(partition)
        return tail is not None and self._tail_has(topic, tail, op, value)

    def _tail_has(
        self, topic: TopicTails, tail: _Tail, op: ReplicationOp, value: bytes | None
    ) -> bool:
        name, last = (op.lsn, op.seq_id), tail.last
        if name > (last.lsn, last.seq_id):
            self._pass(topic, tail)
            return False
        if name == (last.lsn, last.seq_id):
            if not tail.met:
                self._meet(topic, tail, op, value)
            if not last.has(value):
                return False
        if tail.first == NEVER and not tail.met:
            self._unproven.append((topic.topic, tail))
        # of one that waited for its schema it may be lower than of those before
        tail.first = min(tail.first, op.lsn)
        self._meter.left_out += 1
        return True

    def proven(self, resume: Lsn) -> Lsn:
        """Return how far the position may go, of what is sent and delivered below.

        Raises Restart where the stream came past a last record without meeting it.
        """
        if not self._unproven:
            return resume
        for topic, tail in self._unproven:
            if not tail.met and tail.last.lsn < resume:
                raise self._other(topic, tail)
        self._unproven = [one for one in self._unproven if not one[1].met]
        return min([resume, *(tail.first for _, tail in self._unproven)])

    def _meet(
        self, topic: TopicTails, tail: _Tail, op: ReplicationOp, value: bytes | None
    ) -> None:
        if not tail.last.is_of(op, value):
            raise self._other(topic.topic, tail)
        tail.met = True

    def _pass(self, topic: TopicTails, tail: _Tail) -> None:
        """Leave a partition's last record behind."""
        if tail.first != NEVER and not tail.met:
            raise self._other(topic.topic, tail)
        del topic.tails[tail.partition]

    def _other(self, topic: str, tail: _Tail) -> Restart:
        self._disown()
        last = tail.last
        return Restart(
            f"sink {self._sink!r}: the last record of topic {topic!r}, partition"
            f" {tail.partition}, at ({show(last.lsn)}, {last.seq_id}) is not of this"
            " server's history, or another program's: the stream begins again, and"
            " leaves nothing out"
        )
