"""Ends of topics: the offsets that the next records will get."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    OffsetSpec,
)

from walstream.errors import Transient
from walstream.kafka.errors import failure

_TIMEOUT_S: Final = 10.0
_REFRESH_S: Final = 0.5
_LEVELS: Final = IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED


def ends(
    admin: AdminClient,
    partitions: Mapping[str, int],
    *,
    stable: bool = False,
    timeout_s: float = _TIMEOUT_S,
) -> dict[str, list[int]]:
    """Return the offset behind the last record of each partition, from the first on.

    `partitions` is how many each topic has. What was acknowledged to a producer with
    acks=all is below. The `stable` end is not behind the begin of a transaction that
    is open. Raises a WalstreamError where a broker does not say.
    """
    if not partitions:
        return {}
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # theirs
    asked = admin.list_offsets(
        {
            TopicPartition(name, number): latest
            for name, count in partitions.items()
            for number in range(count)
        },
        request_timeout=timeout_s,
        isolation_level=_LEVELS[stable],
    )
    found = {name: [0] * count for name, count in partitions.items()}
    for one, answer in asked.items():
        try:
            found[one.topic][one.partition] = answer.result(timeout_s + 1).offset
        except KafkaException as error:
            # librdkafka would go by a former leader for minutes
            with suppress(KafkaException):
                admin.list_topics(timeout=_REFRESH_S)
            raise failure(error.args[0], f"end of topic {one.topic!r}") from error
        except TimeoutError as error:
            raise Transient("Kafka does not answer") from error
    return found
