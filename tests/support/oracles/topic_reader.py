"""Reading Kafka to its end, independently of walstream's own client code.

with Reader(kafka.bootstrap, prefix) as reader:
    reader.until(lambda records: len(records) == 3)
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.support.deadline import wait_until
from walstream.formats.op import decode
from walstream.op import Kind, ReplicationOp

_LARGEST: Final = 100 << 20
_DEADLINE_S: Final = 60.0
_DISCOVERED_SHARE: Final = 20.0  # of the time, one part is spent on looking for topics


@dataclass(frozen=True)
class Record:
    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]
    timestamp: int  # milliseconds
    op: ReplicationOp

    @property
    def name(self) -> tuple[int, int]:
        """(lsn, seq_id): what orders and names an op."""
        return self.op.lsn, self.op.seq_id

    @property
    def kind(self) -> Kind:
        return self.op.kind

    @property
    def new(self) -> dict[str, Any]:
        """The new row by column; what was not sent is a NotSent."""
        return dict(zip(self.op.table.columns, self.op.new or (), strict=False))

    @property
    def old(self) -> dict[str, Any]:
        return dict(zip(self.op.table.columns, self.op.old or (), strict=False))


class Reader:
    """All records of all topics whose name begins with a prefix, as they arrive."""

    def __init__(
        self, bootstrap: str, prefix: str, decode: Callable[[bytes], Any] = decode
    ) -> None:
        """`decode` makes `op` of a value, of whatever format."""
        self._decode = decode
        self._prefix = prefix
        self._assigned: list[TopicPartition] = []
        self._discover_at = 0.0  # monotonic
        self._next: dict[tuple[str, int], int] = {}  # offsets
        self.records: list[Record] = []  # in each partition by offset
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "tests",
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "fetch.message.max.bytes": _LARGEST // 2,
                "fetch.max.bytes": _LARGEST,
                "receive.message.max.bytes": 1_000_000_000,
                "fetch.wait.max.ms": 10,
            }
        )

    def topics(self) -> list[str]:
        """Name the topics that are there now."""
        found = self._consumer.list_topics(timeout=30).topics
        return sorted(name for name in found if name.startswith(self._prefix))

    def read(self) -> list[Record]:
        """Read on until the end of every partition, as it was when asked."""
        self._discover()
        ends = {
            (part.topic, part.partition): self._end(part) for part in self._assigned
        }
        deadline = time.monotonic() + _DEADLINE_S
        while any(self._next.get(part, 0) < end for part, end in ends.items()):
            assert time.monotonic() < deadline, "the end of the topics is not reached"
            self._take(0.1)
        return self.records

    def until(
        self,
        holds: Callable[[list[Record]], object],
        timeout_s: float = _DEADLINE_S,
        what: str = "the records arrive",
    ) -> list[Record]:
        """Read on until it holds of all records; fail when it does not in time."""
        deadline = time.monotonic() + timeout_s
        while not holds(self.records):
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"not within {timeout_s} s: {what}; {len(self.records)} records in"
                    f" {self.topics()}, the last: {self.records[-3:]}"
                )
            # on a broker of many topics a list of them costs more than their records
            if time.monotonic() >= self._discover_at:
                self._discover()
            self._take(0.05)
        return self.records

    def count(self, wanted: int, timeout_s: float = _DEADLINE_S) -> list[Record]:
        """Read on until there are so many records, and claim that no more are there."""
        self.until(lambda records: len(records) >= wanted, timeout_s, f"{wanted} come")
        assert len(self.read()) == wanted
        return self.records

    def ends(self) -> int:
        """Count the records that the topics hold, without reading them."""
        self._discover()
        return sum(self._end(part) for part in self._assigned)

    def _end(self, part: TopicPartition) -> int:
        """Ask for a partition's end; its leader may still have to be found."""
        deadline = time.monotonic() + _DEADLINE_S
        while True:
            try:
                end: int = self._consumer.get_watermark_offsets(part, timeout=30)[1]
            except KafkaException as error:
                passing = error.args[0].code() in _PASSING
                if time.monotonic() > deadline or not passing:
                    raise
                self._consumer.list_topics(part.topic, timeout=30)  # asks anew
            else:
                return end

    def of(self, table: str) -> list[Record]:
        """Give the records of one table, by its bare name, in stream order."""
        return in_order(r for r in self.records if r.op.table.name == table)

    def _discover(self) -> None:
        began = time.monotonic()
        known = {(part.topic, part.partition) for part in self._assigned}
        metadata = self._consumer.list_topics(timeout=30).topics
        fresh = [
            TopicPartition(name, partition, 0)
            for name, topic in metadata.items()
            if name.startswith(self._prefix)
            for partition in topic.partitions
            if (name, partition) not in known
        ]
        if fresh:
            self._consumer.incremental_assign(fresh)
            self._assigned += fresh
        ended = time.monotonic()
        self._discover_at = ended + _DISCOVERED_SHARE * (ended - began)

    def _take(self, timeout_s: float) -> None:
        messages: list[Any] = self._consumer.consume(1000, timeout=timeout_s)
        # Kafka keeps no order among partitions: a test that counts on one fails always
        messages.sort(key=_partition, reverse=True)
        for message in messages:  # Any: theirs may be None all over, ours are not
            error = message.error()
            if error is not None and error.code() == _END:
                # behind a transaction's marker, which is no record
                self._next[message.topic(), message.partition()] = message.offset()
                continue
            if error is not None:
                # a new topic's leader may not know of it yet
                assert error.retriable() or error.code() in _PASSING, error.str()
                continue
            self._next[message.topic(), message.partition()] = message.offset() + 1
            self.records.append(
                Record(
                    topic=message.topic(),
                    partition=message.partition(),
                    offset=message.offset(),
                    key=message.key(),
                    value=message.value(),
                    headers=message.headers() or [],
                    timestamp=message.timestamp()[1],
                    op=self._decode(message.value()),
                )
            )

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _partition(message: Any) -> tuple[str, int]:
    return message.topic() or "", message.partition()


_END: Final = KafkaError._PARTITION_EOF  # noqa: SLF001 - librdkafka's local codes are so
_PASSING: Final = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - librdkafka's local codes are so
}


def in_order(records: Iterable[Record]) -> list[Record]:
    """Sort by (lsn, seq_id)."""
    return sorted(records, key=lambda record: record.name)


class TopicAdmin:
    """What tests do to topics behind walstream's back."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def create(self, name: str, partitions: int = 1, **config: str) -> None:
        spelt = {key.replace("_", "."): text for key, text in config.items()}
        asked = self._admin.create_topics([NewTopic(name, partitions, config=spelt)])
        asked[name].result(30)
        wait_until(lambda: self.is_told(name), 30, f"{name} is there")

    def delete(self, name: str) -> None:
        self._admin.delete_topics([name])[name].result(30)
        wait_until(lambda: not self.is_told(name), 30, f"{name} is gone")

    def is_told(self, name: str) -> bool:
        """Tell whether the brokers tell clients of it: later than they make it."""
        return name in self._admin.list_topics(timeout=30).topics

    def grow(self, name: str, partitions: int) -> None:
        asked = self._admin.create_partitions([NewPartitions(name, partitions)])
        asked[name].result(30)
        wait_until(lambda: self.partitions(name) == partitions, 30, f"{name} has grown")

    def partitions(self, name: str) -> int:
        """Count those that the brokers tell clients of: later than they make them."""
        return len(self._admin.list_topics(name, timeout=30).topics[name].partitions)

    def setting(self, name: str, key: str) -> str:
        """Return how a topic is configured."""
        which = ConfigResource(ResourceType.TOPIC, name)
        found = self._admin.describe_configs([which])[which].result(30)
        return str(found[key].value)

    def configure(self, name: str, key: str, text: str) -> None:
        entry = ConfigEntry(key, text, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        self._admin.incremental_alter_configs([resource])[resource].result(30)

    def forget_group(self, group: str) -> None:
        """Delete the offsets of a group that nobody is in."""
        self._admin.delete_consumer_groups([group])[group].result(30)

    def delete_before(self, name: str, offset: int, partition: int = 0) -> None:
        """Delete a partition's oldest records, as retention does."""
        where = TopicPartition(name, partition, offset)
        self._admin.delete_records([where])[where].result(30)

    def deny_groups(self) -> None:
        """Take every right on groups from those who are not known by name."""
        rule = AclBinding(
            ResourceType.GROUP,
            "*",
            ResourcePatternType.LITERAL,
            "User:ANONYMOUS",
            "*",
            AclOperation.ALL,
            AclPermissionType.DENY,
        )
        self._admin.create_acls([rule])[rule].result(30)
