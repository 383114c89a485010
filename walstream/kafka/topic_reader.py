"""Reads topics from given offsets, as plain records: no group, nothing is stored.

For those who look at topics (the demo, `tail`), not for applications: these take the
consumer library.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from walstream.config.librdkafka import ClientProperties
from walstream.errors import PermissionLacking, TopicLost, Transient, WalstreamError
from walstream.kafka.errors import failure, unfit
from walstream.kafka.oauth_token import prepared
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.telemetry import runtime

_TIMEOUT_S: Final = 10.0
_RETRY_S: Final = 0.1
_NO_TIMESTAMP: Final = 0  # confluent_kafka.TIMESTAMP_NOT_AVAILABLE
_APPENDED: Final = 2  # confluent_kafka.TIMESTAMP_LOG_APPEND_TIME
_DEFAULTS: Final[ClientProperties] = {
    "client.id": "walstream-reader",
    # librdkafka wants a name; without subscribing and committing no group is made
    "group.id": "walstream-reader",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",  # a jump over what was deleted must show
    "isolation.level": "read_committed",
    "log.connection.close": False,
}
_OWN: Final[ClientProperties] = {"enable.partition.eof": True}  # `reached` needs it
_PASSING: Final = {  # librdkafka goes on by itself
    KafkaError._PARTITION_EOF,  # noqa: SLF001 - librdkafka's local codes are spelt so
    KafkaError._TRANSPORT,  # noqa: SLF001 - likewise
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - likewise
    KafkaError._TIMED_OUT,  # noqa: SLF001 - likewise
    KafkaError.GROUP_AUTHORIZATION_FAILED,  # the group that is not used
}
_CAUSES: Final = (  # of what librdkafka says while a broker does not answer
    KafkaError._AUTHENTICATION,  # noqa: SLF001 - likewise
    KafkaError._SSL,  # noqa: SLF001 - likewise
    KafkaError._RESOLVE,  # noqa: SLF001 - likewise
    KafkaError._TRANSPORT,  # noqa: SLF001 - likewise
)

_UNKNOWN_USER: Final = {
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError._AUTHENTICATION,  # noqa: SLF001 - likewise
}
_AWAY: Final = "check that the brokers run and that this machine can reach them"
_GONE: Final = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001 - likewise


Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class TopicRecord:
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None  # None: a tombstone
    headers: Headers
    timestamp_ms: int | None  # since 1970 UTC
    appended: bool = False  # is it the broker's time?


class TopicReader:
    """One consumer on assigned partitions; `properties` are librdkafka's."""

    def __init__(
        self, properties: ClientProperties, timeout_s: float = _TIMEOUT_S
    ) -> None:
        """`timeout_s` is how long the brokers may take to answer."""
        self._servers = properties.get("bootstrap.servers", "?")
        self._timeout_s = timeout_s
        self._next: dict[Partition, int] = {}
        self._ends: dict[Partition, int] = {}  # where nothing more was, last
        self._ready: list[TopicRecord] = []  # received, and not given yet
        self._failed: WalstreamError | None = None  # raised after what came before it
        self._lost: dict[Partition, TopicLost] = {}  # likewise, and read no further
        self._heard: dict[int, KafkaError] = {}  # by code, since a broker answered
        try:
            self._consumer = Consumer(
                {**_DEFAULTS, **prepared(properties), **_OWN, "error_cb": self._hear},
                logger=logging.getLogger("librdkafka"),
            )
        except KafkaException as error:
            raise unfit(error, "properties of the Kafka client", properties) from error

    def _hear(self, error: KafkaError) -> None:
        self._heard[error.code()] = error

    def topics(self) -> dict[str, int]:
        """Every topic of the cluster, with the number of its partitions."""
        try:
            found = self._consumer.list_topics(timeout=self._timeout_s).topics
        except KafkaException as error:
            raise self._unanswered(error.args[0], "listing topics") from error
        self._heard.clear()
        return {name: len(topic.partitions) for name, topic in found.items()}

    def _unanswered(self, error: KafkaError, doing: str) -> WalstreamError:
        """Return why no broker answers, as far as librdkafka tells."""
        self._fetch(0, 100)  # lets it tell
        for code in _CAUSES:
            if code in self._heard:
                return _failure(self._heard[code], f"{doing} at {self._servers}")
        if error.code() in _PASSING:
            return Transient(
                f"{doing}: Kafka at {self._servers} does not answer", hint=_AWAY
            )
        return _failure(error, doing)

    def bounds(self, topics: Iterable[str]) -> dict[Partition, OffsetBounds]:
        """Where the partitions of these topics begin and end now."""
        existing = self.topics()
        partitions: list[Partition] = []
        for topic in topics:
            if topic not in existing:
                raise TopicLost(f"there is no topic {topic!r}")
            partitions += [
                Partition(topic, number) for number in range(existing[topic])
            ]
        firsts = self._offsets(partitions, OFFSET_BEGINNING)
        ends = self._offsets(partitions, OFFSET_END)
        return {one: OffsetBounds(firsts[one], ends[one]) for one in partitions}

    def ends(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return where partitions end, for who reads what is committed, or all."""
        return self._offsets(list(partitions), OFFSET_END)

    def since(
        self, partitions: Iterable[Partition], timestamp_ms: int
    ) -> dict[Partition, int | None]:
        """Return where the first record of this time or later is; None: nowhere."""
        found = self._offsets(list(partitions), max(0, timestamp_ms))
        return {one: at if at >= 0 else None for one, at in found.items()}

    def _offsets(
        self, partitions: Sequence[Partition], which: int
    ) -> dict[Partition, int]:
        """Find the first, the end, or a time in each."""
        deadline = runtime.monotonic() + self._timeout_s
        found: dict[Partition, int] = {}
        while missing := [one for one in partitions if one not in found]:
            answers, error = self._ask_offsets(missing, which)
            found |= answers
            if error is None:
                continue
            # a topic that was just made has no leader yet
            passing = isinstance(error, Transient | TopicLost)
            if not passing or runtime.monotonic() > deadline:
                raise self._cause(error, missing)
            runtime.sleep(_RETRY_S)
        return found

    def _cause(
        self, error: WalstreamError, missing: Iterable[Partition]
    ) -> WalstreamError:
        """Return what an error means: librdkafka says the same of no leader."""
        if not isinstance(error, TopicLost):
            return error
        there = self.topics()
        if any(one.number >= there.get(one.topic, 0) for one in missing):
            return error
        return Transient(f"{error.args[0]}: it has no leader", hint=_AWAY)

    def _ask_offsets(
        self, partitions: Iterable[Partition], which: int
    ) -> tuple[dict[Partition, int], WalstreamError | None]:
        """Ask each broker once for all its partitions; give an error of the others.

        To brokers the first and the end are times like others.
        """
        doing = "asking for offsets"
        where = [TopicPartition(*one, which) for one in partitions]
        try:
            answers = self._consumer.offsets_for_times(where, timeout=self._timeout_s)
        except KafkaException as error:
            return {}, self._unanswered(error.args[0], doing)
        found: dict[Partition, int] = {}
        failed: WalstreamError | None = None
        for one in answers:
            if one.error is not None:
                failed = _failure(one.error, f"{doing} of {one.topic!r}")
            else:
                found[Partition(one.topic, one.partition)] = one.offset
        return found, failed

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        """Read these partitions, and only these, each from its offset on."""
        self._next = dict(offsets)
        self._ends.clear()
        self._ready.clear()
        self._lost.clear()
        self._consumer.assign(
            [TopicPartition(*one, offset) for one, offset in offsets.items()]
        )

    def add(self, offsets: Mapping[Partition, int]) -> None:
        """Read these partitions beside the others."""
        self._next |= offsets
        self._consumer.incremental_assign(
            [TopicPartition(*one, offset) for one, offset in offsets.items()]
        )

    def drop(self, partitions: Collection[Partition]) -> None:
        """Stop reading these partitions."""
        dropped = [TopicPartition(*one) for one in partitions]
        self._consumer.incremental_unassign(dropped)
        for one in partitions:
            del self._next[one]
            self._ends.pop(one, None)
            self._lost.pop(one, None)

    def poll(self, timeout_s: float, limit: int = 1000) -> list[TopicRecord]:
        """Wait for a record, and take what else is there already. Empty: none came.

        TopicLost names the partitions that are read no further, once; the others go on.
        """
        if not self._ready and self._failed is None and not self._lost:
            self._fetch(timeout_s, limit)
        ready, self._ready = self._ready, []
        if not ready:
            self._raise_failure()
        for record in ready:
            self._next[Partition(record.topic, record.partition)] = record.offset + 1
        return ready

    def _raise_failure(self) -> None:
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        lost, self._lost = self._lost, {}
        if lost:
            raise _lost(lost)

    def _fetch(self, timeout_s: float, limit: int) -> None:
        # consume() alone would wait for as many as the limit
        first = self._consumer.poll(timeout_s)
        if first is None:
            return
        messages = [first]
        if limit > 1:
            messages += self._consumer.consume(limit - 1, timeout=0)
        for message in messages:
            error = message.error()
            if error is None:
                self._ready.append(record_of(message))
                continue
            one = Partition(message.topic() or "", message.partition() or 0)
            if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - likewise
                self._ends[one] = message.offset() or 0
            elif error.code() not in _PASSING:
                failed = _failure(error, f"reading {one.topic}[{one.number}]")
                if isinstance(failed, TopicLost):
                    self._lost[one] = failed
                elif self._failed is None:
                    self._failed = failed

    def reached(self, bounds: Mapping[Partition, OffsetBounds]) -> bool:
        """Whether all that lies below these ends has been read.

        Markers of transactions take offsets too, and never come as records: then Kafka
        says that nothing more is there. The consumer's position would not do, which is
        that of the assignment before for a moment after `assign`.
        """
        return all(
            max(self._next.get(one, OFFSET_INVALID), self._ends.get(one, 0)) >= end
            for one, (_, end) in bounds.items()
        )

    def met_end(self, partition: Partition) -> bool:
        """Return whether Kafka said, since `assign`, that nothing more is there."""
        return partition in self._ends

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def record_of(message: Message) -> TopicRecord:
    """Return the record of a message without an error."""
    kind, timestamp_ms = message.timestamp()
    return TopicRecord(
        # of a message without an error none of these is None
        topic=message.topic() or "",
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        key=message.key(),
        value=message.value(),
        headers=cast("Headers", message.headers() or ()),
        timestamp_ms=None if kind == _NO_TIMESTAMP else timestamp_ms,
        appended=kind == _APPENDED,
    )


def _lost(lost: Mapping[Partition, TopicLost]) -> TopicLost:
    """Return one error of several partitions."""
    (_, first), *others = sorted(lost.items())
    text = str(first.args[0])
    if others:
        text += f"; likewise {', '.join(f'{one[0]}[{one[1]}]' for one, _ in others)}"
    error = TopicLost(text, hint=first.hint)
    error.partitions = frozenset(lost)
    return error


def _failure(error: KafkaError, doing: str) -> WalstreamError:
    """Return the error of a reader, without the hints that are for sinks."""
    if error.code() == _GONE:
        return TopicLost(
            f"{doing}: records are gone that were not read yet ({error.str()})",
            hint="the topic's retention deleted them, or it was created again",
        )
    found = failure(error, doing)
    found.hint = ""
    if error.code() in _UNKNOWN_USER:
        found.hint = "correct the user or the password of the Kafka client"
    elif isinstance(found, PermissionLacking):
        found.hint = "grant Describe and Read on the topic to this user"
    if isinstance(found, Transient):
        found.hint = _AWAY
    return found
