"""Rules of a chain's relays, as `rules` takes them out of walstream."""

from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer

from walstream.kafka import group
from walstream.kafka.group import StoredOffset
from walstream.kafka.group_start import GroupStart
from walstream.kafka.offsets import Partition
from walstream.kafka.topic import Topic
from walstream.sources.kafka.assignment import Assignment
from walstream.sources.kafka.offset_ledger import Offsets
from walstream.sources.kafka.offset_metadata import OffsetMetadata, read
from walstream.sources.kafka.partition_producers import (
    PartitionProducers,
    UpstreamPartition,
)
from walstream.sources.kafka.source_topics import ReadTopics

Patch = tuple[object, str, object]


def stored_before_delivered() -> Patch:
    def patched(self: Offsets) -> int | None:
        while self._queue:
            front = self._queue.popleft()
            self.reached, self.reached_note = front.end, front.note
        return self.reached

    return Offsets, "advance", patched


def source_not_kept() -> Patch:
    written = OffsetMetadata.written

    def patched(self: OffsetMetadata) -> str:
        return written(self._replace(source=""))

    return OffsetMetadata, "written", patched


def created_again_ignored() -> Patch:
    take = Assignment.take

    def patched(self: Assignment, stored: Any, topics: Any) -> None:
        unnamed = {
            at: one._replace(note=read(one.note)._replace(topic="").written())
            for at, one in stored.items()
        }
        take(self, unnamed, topics)

    return Assignment, "take", patched


def deleted_passed_over() -> Patch:
    return group, "_PROMISED", {**group._PROMISED, "auto.offset.reset": "earliest"}


def begun_again() -> Patch:
    return ReadTopics, "begins", lambda *_: ""


def beginnings_not_stored() -> Patch:
    """Leave it to the client to begin, again with each member until a record came."""

    def patched(
        self: GroupStart, consumer: Consumer, where: Any
    ) -> dict[Partition, StoredOffset]:
        return self._stored(consumer, where)

    return GroupStart, "begun", patched


def fenced_by_nobody() -> Patch:
    made = PartitionProducers._made

    def patched(
        self: PartitionProducers, assigned: UpstreamPartition, positions: Topic
    ) -> Any:
        group, self._group = self._group, f"{self._group} {id(self)}"
        try:
            return made(self, assigned, positions)
        finally:
            self._group = group

    return PartitionProducers, "_made", patched


def copied_records_sent_again() -> Patch:
    return PartitionProducers, "has", lambda *_: False


def begins_wherever() -> Patch:
    return (
        GroupStart,
        "first",
        lambda _self, stored, _place: (
            OFFSET_BEGINNING if stored.offset is None else stored.offset
        ),
    )
