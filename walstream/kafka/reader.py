"""Reads topics from given offsets, as plain records: no group, nothing is stored.

For those who look at topics (the demo, `tail`), not for applications: these take the
consumer library.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self, cast

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from walstream.errors import TopicLost, Transient
from walstream.kafka.failure import failure

_TIMEOUT_S: Final = 10.0
_RETRY_S: Final = 0.1
_NO_TIMESTAMP: Final = 0  # confluent_kafka.TIMESTAMP_NOT_AVAILABLE
_DEFAULTS: Final[Mapping[str, Any]] = {
    "client.id": "walstream-reader",
    # librdkafka wants a name; without subscribing and committing no group is made
    "group.id": "walstream-reader",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",  # a jump over what was deleted must show
    "isolation.level": "read_committed",
    "log.connection.close": False,
}
_PASSING: Final = {  # librdkafka goes on by itself
    KafkaError._PARTITION_EOF,  # noqa: SLF001 - librdkafka's local codes are spelt so
    KafkaError._TRANSPORT,  # noqa: SLF001 - likewise
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - likewise
    KafkaError._TIMED_OUT,  # noqa: SLF001 - likewise
}


class Partition(NamedTuple):
    topic: str
    number: int


class Bounds(NamedTuple):
    first: int  # offset of the oldest record
    end: int  # offset that the next record will get


Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class Record:
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None  # None: a tombstone
    headers: Headers
    timestamp_ms: int | None  # since 1970 UTC


class TopicReader:
    """One consumer on assigned partitions; `properties` are librdkafka's."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        self._consumer = Consumer(
            {**_DEFAULTS, **properties}, logger=logging.getLogger("librdkafka")
        )
        self._next: dict[Partition, int] = {}

    def topics(self) -> dict[str, int]:
        """Every topic of the cluster, with the number of its partitions."""
        try:
            found = self._consumer.list_topics(timeout=_TIMEOUT_S).topics
        except KafkaException as error:
            raise failure(error.args[0], "listing topics") from error
        return {name: len(topic.partitions) for name, topic in found.items()}

    def bounds(self, topics: Iterable[str]) -> dict[Partition, Bounds]:
        """Where the partitions of these topics begin and end now."""
        existing = self.topics()
        found = {}
        for topic in topics:
            if topic not in existing:
                raise TopicLost(f"there is no topic {topic!r}")
            for number in range(existing[topic]):
                partition = Partition(topic, number)
                found[partition] = self._bounds(partition)
        return found

    def _bounds(self, partition: Partition) -> Bounds:
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                return self._ask_bounds(partition)
            except Transient:
                # a topic that was just made has no leader yet
                if time.monotonic() > deadline:
                    raise
                time.sleep(_RETRY_S)

    def _ask_bounds(self, partition: Partition) -> Bounds:
        where = TopicPartition(*partition)
        doing = f"asking for the offsets of {partition.topic!r}"
        try:
            bounds = self._consumer.get_watermark_offsets(where, timeout=_TIMEOUT_S)
        except KafkaException as error:
            raise failure(error.args[0], doing) from error
        if bounds is None:
            raise Transient(f"{doing}: no answer")
        return Bounds(*bounds)

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        """Read these partitions, and only these, each from its offset on."""
        self._next = dict(offsets)
        self._consumer.assign(
            [TopicPartition(*one, offset) for one, offset in offsets.items()]
        )

    def poll(self, timeout_s: float, limit: int = 1000) -> list[Record]:
        """Wait for a record, and take what else is there already. Empty: none came."""
        # consume() alone would wait for as many as the limit
        first = self._consumer.poll(timeout_s)
        if first is None:
            return []
        rest = self._consumer.consume(limit - 1, timeout=0) if limit > 1 else []
        return [
            self._record(message) for message in (first, *rest) if _is_record(message)
        ]

    def reached(self, bounds: Mapping[Partition, Bounds]) -> bool:
        """Whether all that lies below these ends has been read."""
        behind = [
            TopicPartition(*partition)
            for partition, (_, end) in bounds.items()
            if self._next.get(partition, OFFSET_INVALID) < end
        ]
        # markers of transactions take offsets too, and never come as records
        return not behind or all(
            where.offset >= bounds[Partition(where.topic, where.partition)].end
            for where in self._consumer.position(behind)
        )

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _record(self, message: Message) -> Record:
        kind, timestamp_ms = message.timestamp()
        record = Record(
            # of a message without an error none of these is None
            topic=message.topic() or "",
            partition=message.partition() or 0,
            offset=message.offset() or 0,
            key=message.key(),
            value=message.value(),
            headers=cast("Headers", message.headers() or ()),
            timestamp_ms=None if kind == _NO_TIMESTAMP else timestamp_ms,
        )
        self._next[Partition(record.topic, record.partition)] = record.offset + 1
        return record


def _is_record(message: Message) -> bool:
    """Tell records from news; raise what reading on would not cure."""
    error = message.error()
    if error is None:
        return True
    if error.code() not in _PASSING:
        raise failure(error, f"reading {message.topic()!r}")
    return False
