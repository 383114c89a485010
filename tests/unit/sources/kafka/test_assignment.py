"""Partitions come and go; what was read of those that went is sent no more."""

import pytest

from walstream.errors import HistoryError, Repair
from walstream.kafka.group import StoredOffset
from walstream.kafka.offsets import Partition
from walstream.kafka.topic_metadata import Described
from walstream.kafka.topic_reader import TopicRecord
from walstream.sources.kafka.assignment import Assignment, wait_for
from walstream.sources.kafka.offset_metadata import OffsetMetadata

A, B = Partition("t", 0), Partition("t", 1)
TOPICS = {"t": Described(2, "id")}


def record(place: Partition, offset: int) -> TopicRecord:
    return TopicRecord(place.topic, place.number, offset, None, b"", (), None)


def holding() -> Assignment:
    made = Assignment(lambda topic: Repair(command=f"begin {topic}"))
    written = OffsetMetadata("id", "7/db/0", ("public", "x")).written()
    begun = OffsetMetadata("id").written()
    made.take({A: StoredOffset(5, written), B: StoredOffset(0, begun)}, TOPICS)
    return made


def test_what_is_known_comes_with_the_partition() -> None:
    made = holding()
    assert made.offsets[A].note == OffsetMetadata("id", "7/db/0", ("public", "x"))
    assert made.offsets[B].note == OffsetMetadata("id")


@pytest.mark.parametrize("offset", [None, 0, 3])
def test_an_offset_that_is_not_ours_is_noted_as_a_replay(offset: int | None) -> None:
    made = holding()
    known = StoredOffset(4, OffsetMetadata("id").written())
    assert made.take({A: StoredOffset(offset), B: known}, TOPICS) == [A]
    note = made.offsets[A].note
    assert note == OffsetMetadata("id", replay=note.replay)
    assert note.replay
    assert made.due() == {A: (offset or 0, note.written())}


def test_another_topic_of_the_name_stops() -> None:
    made = holding()
    with pytest.raises(HistoryError, match="created again") as caught:
        made.take({A: StoredOffset(5, OffsetMetadata("old").written())}, TOPICS)
    assert caught.value.repair.command == "begin t"


def test_what_is_due_is_told_once_and_again_when_it_failed() -> None:
    made = holding()
    portion = made.portion(A, 5)
    made.offsets[A].sent(portion, 5, OffsetMetadata("id", "s"))
    due = {A: (6, OffsetMetadata("id", "s").written())}
    assert made.due() == due
    assert made.due() == {}
    made.tell_again([A, Partition("gone", 0)])
    assert made.due([B]) == {}
    assert made.due([A]) == due
    assert made.take_delivered() == 1


def test_markers_behind_the_last_record_count_as_done() -> None:
    made = holding()
    made.pass_over({A: 7, Partition("gone", 0): 7})
    note = OffsetMetadata("id", "7/db/0", ("public", "x")).written()
    assert made.due() == {A: (7, note)}
    made.add([record(A, 8)])
    made.pass_over({A: 9})
    assert made.due() == {}


def test_what_was_read_of_a_partition_goes_with_it() -> None:
    made = holding()
    made.add([record(A, 5), record(B, 0), record(A, 6)])
    made.portion(A, 5).undelivered = 2
    assert made.undelivered() == made.undelivered([A]) == 2
    made.leave([A])
    assert [one.partition for one in made.pending] == [1]
    assert made.undelivered() == 0
    assert made.due() == {}


def test_a_new_portion_begins_with_what_is_read_next() -> None:
    made = holding()
    first = made.portion(A, 5)
    assert made.portion(A, 6) is first
    made.close_portions()
    assert first.closed
    assert made.portion(A, 7) is not first


def test_the_lag_counts_what_is_known() -> None:
    made = holding()
    made.offsets[B].stored = None
    assert made.lag({}) is None
    assert made.lag({A: 9, B: 4, Partition("gone", 0): 7}) == 4
    made.offsets[A].sent(made.portion(A, 5), 5, OffsetMetadata("id"))
    made.due()
    assert made.lag({A: 9}) == 3


def test_waiting_ends_when_it_holds_or_at_an_end() -> None:
    left = [1, 2, 3]
    assert wait_for(lambda: not left, left.pop, lambda: False)
    assert not wait_for(lambda: False, lambda: None, lambda: True)
