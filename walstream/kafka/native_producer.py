"""A producer without the binding's objects, where librdkafka.c is compiled.

Deliveries of a transaction are one number, not an object each
(docs/decisions/0119-producer-without-the-binding.md).
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException

from walstream.kafka.binding_producer import LOGGER, Reports
from walstream.pipeline.ledger import Counted

if TYPE_CHECKING:
    from walstream.kafka import librdkafka

BINDING: Final = "WALSTREAM_BINDING"
"""Set to any word in the environment: all goes through confluent-kafka's producer."""
_ITS_OWN: Final = {
    "plugin.library.paths",  # read before all others, and looked for in its wheel
    "sasl.oauthbearer.metadata.authentication.type",  # of AWS: it makes a callback
}
"""Properties of which the binding does more than hand them on."""
_ERROR: Final = -1
_FATAL: Final = -2
_LEVELS: Final = (
    50,
    50,
    50,
    40,
    30,
    20,
    20,
    10,
)  # of syslog's, as the binding has them


class _Delivery:
    """One record's delivery, as a callback looks at the binding's message."""

    def __init__(
        self, topic: str = "", partition: int = 0, offset: int | None = 0
    ) -> None:
        self._topic, self._partition, self._offset = topic, partition, offset

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int | None:
        """Return None where it failed, else a number that says nothing."""
        return self._offset


class NativeProducer:
    """Stands for confluent_kafka's Producer."""

    def __init__(
        self,
        module: Any,
        properties: dict[str, str],
        hear: Callable[[KafkaError], None],
    ) -> None:
        self._count = module.Count
        self._client: librdkafka.Producer = module.Producer(properties)
        self._hear = hear
        self.produce = self._client.produce
        self.flush = self._client.flush
        self.poll = self._client.poll
        self.purge = self._client.purge
        self.list_topics = self._client.list_topics

    def __len__(self) -> int:
        return len(self._client)

    def callback(self, transaction: Counted, _reports: Reports) -> object:
        """Return what `produce` takes as callback for records of a transaction."""
        return self._count(transaction)

    def report(self, reports: Reports) -> int:
        """Return the number of records that were reported; tell what polls heard.

        Raises the error that ends this producer, once all is told.
        """
        told = self._client.take()
        if told is None:
            return 0
        reported, delivered, failures, words = told
        for owner, records in delivered:
            if isinstance(owner, Counted):
                reports.count(owner, records)
            else:
                reported -= 1  # it tells so itself
                owner(None, _DELIVERED)  # type: ignore[operator]  # a callback
        for owner, code, topic, partition in failures:
            error = KafkaError(code) if code else None
            if isinstance(owner, Counted):
                reports.miss(error, topic, partition)
            else:
                reported -= 1
                missed = _Delivery(topic, partition, None)
                owner(error, missed)  # type: ignore[operator]  # likewise
        if words:
            self._say(words)
        return reported

    def _say(self, words: list[tuple[int, int, str, str]]) -> None:
        ended: KafkaError | None = None
        for level, code, facility, text in words:
            if level == _ERROR:
                self._hear(KafkaError(code, text))
            elif level == _FATAL:
                ended = KafkaError(code, text, True)  # noqa: FBT003 - fatal
            else:
                LOGGER.log(
                    _LEVELS[level & 7], "%s [%s] %s", facility, self._client.name, text
                )
        if ended is not None:
            raise KafkaException(ended)

    def close(self) -> None:
        """Let go of owners: what is in flight is not told of."""
        self._client.close()


_DELIVERED: Final = _Delivery()


def native_producer(
    properties: Mapping[str, object],
    hear: Callable[[KafkaError], None],
) -> NativeProducer | None:
    """Return one; None where the binding's is needed.

    That is where no librdkafka.c is compiled, tokens are made by a callback, or a
    property is the binding's own.
    Raises KafkaException for properties that librdkafka refuses.
    """
    module = _module()
    if module is None or any(callable(value) for value in properties.values()):
        return None
    if _ITS_OWN & properties.keys():
        return None
    spelt = {name: _spelt(value) for name, value in properties.items()}
    return NativeProducer(module, spelt, hear)


def _module() -> Any:
    if os.environ.get(BINDING):
        return None
    try:
        from walstream.kafka import librdkafka  # noqa: PLC0415 - a wheel may lack it
    except ImportError:
        return None
    return librdkafka


def _spelt(value: object) -> str:
    """As the binding spells a property."""
    return str(value).lower() if isinstance(value, bool) else str(value)
