"""Offsets, by example; tests/property has every interleaving."""

from walstream.sources.kafka.offset_ledger import Offsets
from walstream.sources.kafka.offset_metadata import OffsetMetadata


def test_the_front_decides() -> None:
    offsets = Offsets()
    first = offsets.begin(10)
    first.undelivered += 1
    offsets.sent(first, 10, OffsetMetadata("t", "a"))
    second = offsets.begin(11)
    second.undelivered += 1
    offsets.sent(second, 11, OffsetMetadata("t", "b"))
    second.undelivered -= 1
    assert not offsets.advance()
    assert offsets.undelivered == 1
    first.undelivered -= 1
    offsets.close()
    assert offsets.advance() == 12
    due = offsets.due
    assert due == 12
    assert offsets.reached_note.source == "b"
    offsets.stored = 12
    assert offsets.due is None
    assert offsets.take_delivered() == 2
    assert offsets.take_delivered() == 0


def test_what_never_comes_as_a_record_is_passed_over() -> None:
    offsets = Offsets()
    offsets.stored = 10
    offsets.pass_over(10)
    assert not offsets.reached
    offsets.pass_over(12)
    assert offsets.due == 12
    portion = offsets.begin(12)
    portion.undelivered += 1
    offsets.sent(portion, 12, OffsetMetadata("t"))
    offsets.pass_over(14)
    assert offsets.advance() == 12
    portion.undelivered -= 1
    assert offsets.advance() == 14
    offsets.pass_over(13)
    assert offsets.advance() == 14


def test_what_is_read_still_counts_as_far_as_it_was_sent() -> None:
    offsets = Offsets()
    portion = offsets.begin(5)
    offsets.sent(portion, 7, OffsetMetadata("t"))
    assert offsets.advance() == 8
    portion.undelivered += 1
    offsets.sent(portion, 8, OffsetMetadata("t"))
    assert offsets.advance() == 8


def test_what_the_group_had_noted_is_known_until_more_is_delivered() -> None:
    noted = OffsetMetadata("t", "a")
    offsets = Offsets(noted)
    assert offsets.reached_note == noted
    assert offsets.begin(7).note == noted
    assert offsets.reached_note == noted


def test_a_first_offset_that_never_comes_as_a_record_is_passed_over() -> None:
    for stored in (None, 0):
        offsets = Offsets()
        offsets.stored = stored
        offsets.pass_over(1)
        assert offsets.due == 1
