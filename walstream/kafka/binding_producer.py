"""A producer through confluent-kafka: each delivery calls back."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from confluent_kafka import KafkaError, Message, Producer

from walstream.pipeline.ledger import Counted

LOGGER: Final = logging.getLogger("librdkafka")


class Reports(Protocol):
    """Listener to deliveries."""

    def hear(
        self, transaction: Counted, error: KafkaError | None, message: Message, /
    ) -> None:
        """Count one record that is delivered, or is not."""

    def count(self, transaction: Counted, records: int, /) -> None:
        """Count so many that are delivered."""

    def miss(
        self, error: KafkaError | None, topic: str | None, partition: int | None, /
    ) -> None:
        """Note that one is not delivered; None: it has no offset."""


class BindingProducer:
    """The binding's producer, as `OrderedProducer` takes it."""

    def __init__(
        self,
        properties: Mapping[str, object],
        hear: Callable[[KafkaError], None],
        make: Callable[..., Producer] | None = None,
    ) -> None:
        self.client = (make or Producer)(
            {**properties, "error_cb": hear}, logger=LOGGER
        )
        self.produce: Any = self.client.produce
        self.poll: Callable[[float], object] = self.client.poll
        self.flush: Callable[[float], object] = self.client.flush
        self.purge: Callable[[], object] = self.client.purge
        self.list_topics: Any = self.client.list_topics

    def __len__(self) -> int:
        return len(self.client)

    def callback(self, transaction: Counted, reports: Reports) -> object:
        """Return what `produce` takes as callback for records of a transaction."""
        return partial(reports.hear, transaction)

    def report(self, _reports: Reports) -> int:
        """Return how many records are reported; here they were, in the poll."""
        return 0

    def close(self) -> None: ...
