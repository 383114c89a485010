"""Copy of a record that was read: produced where it was read, as it was."""

from collections.abc import Callable
from typing import Final

from confluent_kafka import Producer

from walstream.kafka.topic_reader import TopicRecord

_FLUSH_S: Final = 0.1


def produce_copy(
    producer: Producer, record: TopicRecord, is_over: Callable[[], bool]
) -> None:
    """Produce it, in its partition; wait for room in the queue.

    Raises BufferError where there is none and it `is_over`, and KafkaException.
    """
    while True:
        try:
            producer.produce(
                record.topic,
                record.value,
                record.key,
                record.partition,
                timestamp=record.timestamp_ms or 0,
                headers=[*record.headers],
            )
        except BufferError:
            if is_over():
                raise
            producer.flush(_FLUSH_S)
        else:
            return
