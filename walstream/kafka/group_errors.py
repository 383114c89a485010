"""Errors of a group member while it reads: which ones pass, and what they mean.

librdkafka goes on by itself behind a passing error. After any other it stops, or skips
what it could not read: so a member stops there, and starts again at the group's stored
offset.
"""

from typing import Final

from confluent_kafka import KafkaError

from walstream.errors import RETRIED, HistoryError, Transient, WalstreamError
from walstream.kafka.group import DENIED, reading_failure, spelt
from walstream.kafka.offsets import Partition

PASSING: Final = {
    KafkaError._PARTITION_EOF,  # noqa: SLF001 - librdkafka's local codes are spelt so
    KafkaError._TRANSPORT,  # noqa: SLF001 - likewise
    KafkaError._RESOLVE,  # noqa: SLF001 - likewise
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - likewise
    KafkaError._TIMED_OUT,  # noqa: SLF001 - likewise
    KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001 - likewise
    KafkaError._WAIT_COORD,  # noqa: SLF001 - likewise
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    # the group moves partitions, or its coordinator does
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
}
_BROKEN: Final = {
    KafkaError.INVALID_MSG,
    KafkaError._BAD_MSG,  # noqa: SLF001 - likewise
    KafkaError._BAD_COMPRESSION,  # noqa: SLF001 - likewise
    KafkaError._NOT_IMPLEMENTED,  # noqa: SLF001 - likewise: a codec, for one
}


def reading_trouble(
    error: KafkaError, group: str, place: Partition | None, offset: int | None
) -> WalstreamError | None:
    """Return the error of a member that cannot read on; None if it passes by itself.

    `place` is None where it is the group's trouble.
    """
    code = error.code()
    if code in PASSING:
        return None
    where = f"group {group!r}"
    if place is not None:
        at = f" at offset {offset}" if offset is not None and offset >= 0 else ""
        where = f"{spelt(place)}{at}"
    if code in DENIED:
        return reading_failure(error, f"reading {where}")
    text = f"reading {where}: {error.str()} ({error.name()})"
    if code == KafkaError.MSG_SIZE_TOO_LARGE:
        return HistoryError(
            f"{text}: the record is larger than the consumer accepts",
            hint='raise "receive.message.max.bytes" and "fetch.message.max.bytes" of'
            " the source's consumer, then: walstream run",
        )
    if code in _BROKEN:
        return Transient(
            text,
            hint=f"{RETRIED} and skips nothing; if this persists, the broker's copy"
            " is damaged: let another replica lead",
        )
    return Transient(text, hint=RETRIED)
