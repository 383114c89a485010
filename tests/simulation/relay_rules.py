"""Rules of a chain's relays, as `rules` takes them out of walstream."""

from typing import Any

from walstream.kafka import group
from walstream.sources.kafka.assignment import Assignment
from walstream.sources.kafka.offset_ledger import Offsets
from walstream.sources.kafka.offset_metadata import OffsetMetadata, read
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
