"""A relay's producers, built for the sizes that its topics take."""

from typing import Final

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Restart
from walstream.kafka.producer_config import producer_properties, room_of, split_queue
from walstream.kafka.topic import Topic
from walstream.sources.kafka.metrics import Lasting

_ANY_SIZE: Final = 1 << 62


class RelayFit:
    """Sizes that the producers were built for, and whether they still fit."""

    def __init__(self, lasting: Lasting) -> None:
        """`lasting` knows what earlier ones met."""
        self._lasting = lasting
        self._smallest = 0  # limit that batches are made for
        self.largest = _ANY_SIZE  # record that a queue has room for

    def properties(self, given: ClientProperties, parts: int) -> dict[str, object]:
        """Return those of each of the producers that share one queue in `parts`."""
        limits = self._lasting.limits
        made = producer_properties(given, *limits)
        if parts > 1:
            # a part has room for the largest record, too, or that waits for ever
            made = producer_properties(split_queue(made, parts), *limits)
        self._smallest, self.largest = limits[0], room_of(made)
        return made

    def check(self, topic: Topic) -> None:
        """Raise Restart where batches are too large for a topic, or queues too small.

        Before a producer is built it is built for that topic, too.
        """
        self._lasting.see(topic.limit)
        smallest, largest = self._lasting.limits
        if smallest < self._smallest or largest > self.largest:
            raise Restart("the largest record that a topic takes has changed")
