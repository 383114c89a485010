"""A copy is the record as it was read, and waits for room until it is told not to."""

from typing import Any, cast

import pytest

from walstream.kafka.record_copy import produce_copy
from walstream.kafka.topic_reader import TopicRecord

RECORD = TopicRecord("t", 3, 17, b"k", b"v", [("h", b"1")], 7)


class Queue:
    """A producer that has no room for some times."""

    def __init__(self, full: int) -> None:
        self.full = full
        self.sent: list[tuple[Any, ...]] = []
        self.flushes = 0

    def produce(self, *parts: Any, **named: Any) -> None:
        if self.full:
            self.full -= 1
            raise BufferError
        self.sent.append((*parts, named))

    def flush(self, _wait_s: float) -> None:
        self.flushes += 1


def test_it_is_the_record_once_there_is_room() -> None:
    queue = Queue(full=2)
    produce_copy(cast("Any", queue), RECORD, lambda: False)
    named = {"timestamp": 7, "headers": [("h", b"1")]}
    assert queue.sent == [("t", b"v", b"k", 3, named)]
    assert queue.flushes == 2


def test_without_room_it_ends_when_it_is_over() -> None:
    queue = Queue(full=9)
    with pytest.raises(BufferError):
        produce_copy(cast("Any", queue), RECORD, lambda: queue.flushes == 3)
    assert not queue.sent
