"""A sink's producers, built for the sizes that its topics take."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Restart
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.producer_config import (
    client_properties,
    fits_queue,
    hurries,
    parts_within,
    producer_properties,
    split_queue,
)
from walstream.kafka.producer_pool import ProducerPool, parts_for
from walstream.kafka.topic import Topic
from walstream.kafka.transaction_position import DeliveredTransactions
from walstream.kafka.transactional_producer import TransactionalProducer
from walstream.telemetry.meter import SinkMeter


class ProducerFit:
    """Sizes that the producers were built for, and whether they still fit."""

    def __init__(
        self,
        name: str,
        meter: SinkMeter,
        given: ClientProperties,
        transactions: DeliveredTransactions | None = None,
        known: Callable[[], Mapping[str, Topic]] | None = None,
    ) -> None:
        """`given` are the operator's properties, and the share of the memory.

        With `transactions` there is one alone, which writes in Kafka's; `known` returns
        the topics, that of their positions among them, once it is open.
        """
        self._name = name
        self._meter = meter
        self._given = given
        self._transactions = transactions
        self._known = known
        self._properties: ClientProperties = given  # of one of the producers
        self._limits = (0, 0)

    def open(self, topics: Sequence[str], limits: tuple[int, int]) -> ProducerPool:
        """Build them for topics whose smallest and largest record are `limits`."""
        self._limits = limits
        wanted = 1 if self._transactions is not None else parts_for(len(topics))
        parts = parts_within(self._given, wanted, limits[1])
        self._properties = split_queue(self._given, parts)
        properties = producer_properties(self._properties, *limits)
        made = ProducerPool(parts, self._maker(properties))
        if topics:
            made.acquaint(topics[0])
        return made

    def _maker(self, properties: ClientProperties) -> Callable[[], OrderedProducer]:
        hurry = hurries(self._given)
        transactions, known = self._transactions, self._known
        if transactions is None or known is None:
            return partial(
                OrderedProducer, self._name, properties, self._meter, hurries=hurry
            )
        return partial(
            TransactionalProducer,
            self._name,
            {**properties, **transactions.plan.properties},
            self._meter,
            hurries=hurry,
            given=self._given,
            client=client_properties(self._given),
            book=transactions,
            positions=partial(_topic, known, transactions.plan.topic),
            written=partial(_partitions, known),
        )

    def check(self, limits: tuple[int, int]) -> None:
        """Raise Restart when batches are too large, or the queue too small, for these.

        A wider limit needs neither: the size check reads it from the topic.
        """
        smallest, largest = limits
        if smallest < self._limits[0] or not fits_queue(
            self._properties, largest, self._limits[1]
        ):
            raise Restart("max.message.bytes of a topic changed")


def _topic(known: Callable[[], Mapping[str, Topic]], name: str) -> Topic:
    found = known().get(name)
    if found is None:  # as where nothing was written to it lately
        raise Restart(f"topic {name!r} of positions was deleted")
    return found


def _partitions(known: Callable[[], Mapping[str, Topic]]) -> dict[str, int]:
    return {name: topic.partitions for name, topic in known().items()}
