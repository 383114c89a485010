"""Partitions that had no leader when transactions left open were looked for.

An older transaction may be open there, which the next one of its producer would end as
its own ends: records that come again would be there twice, or those that do not would
be lost. So nothing is sent to them before they were looked at, at another start.
"""

from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Any, Final, Protocol

from confluent_kafka import KafkaException

from walstream.errors import Restart
from walstream.kafka.offsets import Partition
from walstream.telemetry import runtime

_ANSWER_S: Final = 1.0
_AGAIN_S: Final = 0.5


class _Asks(Protocol):
    def list_topics(self, topic: str, timeout: float) -> Any: ...


class _Submit(Protocol):
    def __call__(self, call: Callable[[], bool], /) -> Future[bool]: ...


class LeaderlessPartitions:
    """Partitions whose records wait; falsy where there are none."""

    def __init__(
        self, places: Collection[Partition], asks: _Asks, submit: _Submit
    ) -> None:
        """`submit` lets a thread call what waits for brokers."""
        self._places = frozenset(places)
        self._asks = asks
        self._submit = submit
        self._look: Future[bool] | None = None

    def __bool__(self) -> bool:
        return bool(self._places)

    def has(self, topic: str, partition: int) -> bool:
        """Return whether a record has to wait; ask again and again while it does.

        Raises Restart once its partition has a leader: the next start looks at it.
        """
        place = Partition(topic, partition)
        if place not in self._places:
            return False
        if self._look is None:
            self._look = self._submit(lambda: self._has_leader(place))
        elif self._look.done():
            look, self._look = self._look, None
            if look.result():
                raise Restart(
                    f"partition {topic}[{partition}] has a leader again: whether an"
                    " older transaction is open there is looked at first"
                )
        return True

    def _has_leader(self, place: Partition) -> bool:
        """Return whether it has one by now."""
        try:
            found = self._asks.list_topics(place.topic, timeout=_ANSWER_S)
            has_one = bool(
                found.topics[place.topic].partitions[place.number].leader >= 0
            )
        except (KafkaException, KeyError):
            has_one = False
        if not has_one:
            runtime.sleep(_AGAIN_S)
        return has_one
