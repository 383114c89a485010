"""A sink's producers, built for the sizes that its topics take."""

from collections.abc import Sequence
from functools import partial

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Restart
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.producer_config import (
    fits_queue,
    hurries,
    parts_within,
    producer_properties,
    split_queue,
)
from walstream.kafka.producer_pool import ProducerPool, parts_for
from walstream.telemetry.meter import SinkMeter


class ProducerFit:
    """Sizes that the producers were built for, and whether they still fit."""

    def __init__(self, name: str, meter: SinkMeter, given: ClientProperties) -> None:
        """`given` are the operator's properties, and the share of the memory."""
        self._name = name
        self._meter = meter
        self._given = given
        self._properties: ClientProperties = given  # of one of the producers
        self._limits = (0, 0)

    def open(self, topics: Sequence[str], limits: tuple[int, int]) -> ProducerPool:
        """Build them for topics whose smallest and largest record are `limits`."""
        self._limits = limits
        parts = parts_within(self._given, parts_for(len(topics)), limits[1])
        self._properties = split_queue(self._given, parts)
        properties = producer_properties(self._properties, *limits)
        hurry = hurries(self._given)
        make = partial(
            OrderedProducer, self._name, properties, self._meter, hurries=hurry
        )
        made = ProducerPool(parts, make)
        if topics:
            made.acquaint(topics[0])
        return made

    def check(self, limits: tuple[int, int]) -> None:
        """Raise Restart when batches are too large, or the queue too small, for these.

        A wider limit needs neither: the size check reads it from the topic.
        """
        smallest, largest = limits
        if smallest < self._limits[0] or not fits_queue(
            self._properties, largest, self._limits[1]
        ):
            raise Restart("max.message.bytes of a topic changed")
