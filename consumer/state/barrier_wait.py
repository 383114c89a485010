"""Wait of a partition at a Truncate, and the others for which it does not wait.

Kafka may have deleted the Truncate from a partition before the group began there. Such
a partition is known: it did not begin with its first record, and was read to its end
long after the Truncate was met in another one.

A partition may wait itself, at a Truncate before: that is waited for as long once more,
and again while those that are waited for change.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from consumer.group.assigned_partition import Place
from consumer.handler import Transaction
from consumer.op import Op
from consumer.state.topic_guard import TopicGuard
from consumer.state.truncate_barrier import Barrier
from walstream.telemetry import runtime

T = TypeVar("T")


class Ask(Protocol):
    """Whoever has a question answered."""

    def __call__(self, question: Callable[[Transaction], T], /) -> T:
        """Return its answer."""


class BarrierWait:
    """Wait of one partition, at one Truncate after the other."""

    def __init__(
        self,
        ask: Ask,
        guard: TopicGuard,
        longest_s: float,
    ) -> None:
        """`ask` has a question answered that the database or Kafka may not answer."""
        self._ask = ask
        self._guard = guard
        self._longest_s = longest_s
        self._offset = -1
        self._since = 0.0
        self._lacking: frozenset[int] = frozenset()
        self._earlier: frozenset[tuple[str, str]] = frozenset()  # as of the last look

    def lacking(self, offset: int) -> frozenset[int]:
        """Return the partitions that are known to lack the Truncate at this offset."""
        if offset != self._offset:
            self._offset, self._since = offset, runtime.monotonic()
            self._lacking, self._earlier = frozenset(), frozenset()
        return self._lacking

    def look(self, op: Op, barrier: Barrier) -> None:
        """Raise BarrierTimeout after a long time, unless the others lack it."""
        if runtime.monotonic() - self._since <= self._longest_s:
            return
        self._lacking = self._ask(lambda tx: self._found(tx, op.record.topic, barrier))
        if self._lacking:
            return
        earlier = self._ask(barrier.earlier)
        if earlier == self._earlier:
            raise barrier.timeout(op, self._longest_s)
        self._earlier = earlier
        self._since = runtime.monotonic()

    def _found(self, tx: Transaction, topic: str, barrier: Barrier) -> frozenset[int]:
        offsets = barrier.late_offsets(tx)
        for partition in barrier.missing:
            # asked after the offset: what was written since would be read first
            reached = offsets.get(partition)
            if (
                reached is None
                or reached < self._guard.bounds(Place(topic, partition))[1]
            ):
                return frozenset()
        return frozenset(barrier.missing)
