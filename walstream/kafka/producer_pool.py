"""A sink's producers: one, or for many topics several, each with its share of them.

librdkafka looks a topic up among all that a producer has, one by one: with 1,000 that
costs six times what the rest of a record costs. All records of a topic go through one
producer, so that none is overtaken.
"""

from collections.abc import Callable
from typing import Final

from walstream.errors import WalstreamError
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.pipeline.outage import Outage
from walstream.telemetry import runtime

_POLL_S: Final = 0.05
_TOPICS_EACH: Final = 200
_MOST: Final = 16  # each has its threads, and a connection to every broker


def parts_for(topics: int) -> int:
    """Return how many producers serve that many topics."""
    return max(1, min(_MOST, -(-topics // _TOPICS_EACH)))


class ProducerPool:
    """As many as `parts`; a topic stays with the one that it got at first."""

    def __init__(self, parts: int, make: Callable[[], OrderedProducer]) -> None:
        """Make all of them."""
        self._all = [make() for _ in range(parts)]
        self._of: dict[str, OrderedProducer] = {}  # by topic

    def acquaint(self, topic: str) -> None:
        """Let each be ready to send before its first record comes; waits for none."""
        for one in self._all:
            one.acquaint(topic)

    def of(self, topic: str) -> OrderedProducer:
        """Return the outbox of a topic's records."""
        found = self._of.get(topic)
        if found is None:
            found = self._of[topic] = self._all[len(self._of) % len(self._all)]
        return found

    def serve(self) -> bool:
        """Serve delivery reports, send what is held; return whether all have room.

        Raises what stops one of these producers for good.
        """
        room = True
        busy = any([one.is_busy for one in self._all])  # noqa: C419 - compiled
        for one in self._all:
            if not one.serve(busy=busy):
                room = False
        return room

    def flush(self) -> None:
        """Send what waits for others: no other came."""
        for one in self._all:
            one.flush()

    @property
    def in_flight(self) -> int:
        """Count of records and of the producers' own requests in flight."""
        return sum([one.in_flight for one in self._all])

    @property
    def has_doubts(self) -> bool:
        """Return whether a partition may lack a record before its last ones."""
        return any([one.has_doubts for one in self._all])  # noqa: C419 - compiled

    @property
    def unreachable(self) -> bool:
        """Return whether Kafka was in trouble at its last sign to one of them."""
        return any([one.unreachable for one in self._all])  # noqa: C419 - compiled

    @property
    def outage(self) -> Outage | None:
        """Reason why Kafka does not answer, as far as one of them knows."""
        for one in self._all:
            if (found := one.outage) is not None:
                return found
        return None

    def answers(self) -> None:
        """Note that Kafka's trouble is over."""
        for one in self._all:
            if one.unreachable:
                one.answers()

    def fail(self, error: WalstreamError) -> None:
        """Remember what stops these producers."""
        self._all[0].fail(error)

    def wait(self, wait_s: float) -> None:
        """Wait this long for what is in flight in any of them."""
        deadline = runtime.monotonic() + wait_s
        while runtime.monotonic() < deadline:
            waited_for = [one for one in self._all if one.lets_wait]
            if not waited_for:
                break
            for one in waited_for:
                one.wait(_POLL_S / len(waited_for))

    def close(self) -> None:
        """Drop what is in flight."""
        for one in self._all:
            one.close(0.0)
