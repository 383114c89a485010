"""Ends of topics: the offsets that the next records will get."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    OffsetSpec,
)

from walstream.errors import Transient
from walstream.kafka.errors import failure
from walstream.kafka.offsets import Partition

_TIMEOUT_S: Final = 10.0
_REFRESH_S: Final = 0.5


def ends(
    admin: AdminClient,
    partitions: Mapping[str, int],
) -> dict[str, list[int]]:
    """Return the offset behind the last record of each partition, from the first on.

    `partitions` is how many each topic has. What was acknowledged to a producer with
    acks=all is below. Raises a WalstreamError where a broker does not say: one
    partition without a leader keeps those of all others, too.
    """
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # theirs
    found = {name: [0] * count for name, count in partitions.items()}
    wanted = {
        TopicPartition(name, number): latest
        for name, count in partitions.items()
        for number in range(count)
    }
    if not wanted:
        return found
    asked = admin.list_offsets(wanted, request_timeout=_TIMEOUT_S)
    for one, answer in asked.items():
        try:
            offset = answer.result(_TIMEOUT_S + 1).offset
        except KafkaException as error:
            # librdkafka would go by a former leader for minutes
            with suppress(KafkaException):
                admin.list_topics(timeout=_REFRESH_S)
            raise failure(error.args[0], f"end of topic {one.topic!r}") from error
        except TimeoutError as error:
            raise Transient("Kafka does not answer") from error
        if offset < 0:  # librdkafka's answer where a broker gave none in time
            raise Transient("Kafka does not answer")
        found[one.topic][one.partition] = offset
    return found


def leaderless(admin: AdminClient, partitions: Mapping[str, int]) -> set[Partition]:
    """Return those without a leader, as far as a broker tells."""
    try:
        found = admin.list_topics(timeout=_REFRESH_S * 4).topics
    except KafkaException:
        return set()
    return {
        Partition(name, number)
        for name in partitions.keys() & found.keys()
        for number, one in found[name].partitions.items()
        if one.leader < 0 and number < partitions[name]
    }
