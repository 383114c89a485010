"""Offsets, by example; tests/property has every interleaving."""

from walstream.chaining.note import Note
from walstream.chaining.offsets import Offsets


def test_the_front_decides() -> None:
    offsets = Offsets()
    first = offsets.begin(10)
    first.undelivered += 1
    offsets.sent(first, 10, Note("t", "a"))
    second = offsets.begin(11)
    second.undelivered += 1
    offsets.sent(second, 11, Note("t", "b"))
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


def test_what_is_read_still_counts_as_far_as_it_was_sent() -> None:
    offsets = Offsets()
    portion = offsets.begin(5)
    offsets.sent(portion, 7, Note("t"))
    assert offsets.advance() == 8
    portion.undelivered += 1
    offsets.sent(portion, 8, Note("t"))
    assert offsets.advance() == 8
