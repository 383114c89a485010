"""A large frame's row is the one that `decode` reads, but for where its texts are."""

import gc
import weakref

import pytest

from walstream.errors import DecodeError
from walstream.formats.placeholder import StandIn
from walstream.pipeline.pgoutput import Delete, Insert, RowMessage, Update, decode
from walstream.pipeline.pgoutput.large_value import (
    HEAD_SIZE,
    LARGE_FRAME,
    LargeFrame,
    read,
)
from walstream.row import UNCHANGED
from walstream.testing import encode, wal_data

BIG = "ä😀x" * 2000
ROWS: list[RowMessage] = [
    Insert(7, ["1", BIG, None, "s" * 4096], False),
    Update(7, None, False, ["1", BIG, UNCHANGED, BIG], True),
    Update(7, ["1", None, None, None], False, ["1", BIG, None, ""], False),
    Update(7, ["1", BIG, None, "x"], True, ["1", "y", BIG, BIG], False),
    Delete(7, ["1", BIG, None, "x"], True),
]


def framed(payload: bytes) -> LargeFrame:
    return LargeFrame(memoryview(wal_data(payload, 100)))


def spelled(message: RowMessage) -> RowMessage:
    """Put the texts back."""
    rows = [getattr(message, "old", None), getattr(message, "new", None)]
    for row in filter(None, rows):
        row[:] = [v.text() if isinstance(v, StandIn) else v for v in row]
    return message


@pytest.mark.parametrize("message", ROWS)
def test_a_row_is_what_decode_reads(message: RowMessage) -> None:
    payload = encode(message)
    found = read(framed(payload))
    texts = repr(found)
    assert BIG not in texts
    assert "walstream:" in texts
    assert spelled(found) == decode(payload) == message


@pytest.mark.parametrize("message", ROWS)
def test_damaged_rows_are_refused_as_decode_refuses_them(message: RowMessage) -> None:
    payload = encode(message)
    at = len(payload) - 3
    damaged = [payload[:at], payload + b"x", payload[:at] + b"\xff\xff\xff"]
    # a length beyond the end, and no such kind of column
    damaged += [payload.replace(b"t\0\0", b"t\x7f\0"), payload.replace(b"t\0", b"z\0")]
    for one in damaged:
        with pytest.raises(DecodeError) as theirs:
            decode(one)
        with pytest.raises(DecodeError) as ours:
            read(framed(one))
        assert str(ours.value) == str(theirs.value)


def test_a_frame_shows_its_head_and_gives_its_payload_away_once() -> None:
    frame = framed(b"I rest")
    assert len(frame) == HEAD_SIZE
    assert frame[0] == ord("w")
    assert frame[-1] == ord("I")
    assert bytes(frame.take()) == b"I rest"
    with pytest.raises(ValueError, match="before"):
        frame.take()


def test_a_row_that_ends_behind_its_tag_is_refused() -> None:
    with pytest.raises(DecodeError):
        read(wal_data(b"I"))


class Kept(bytearray):
    """Bytes that are seen to be given up."""


def test_nothing_is_kept_when_the_row_is_gone() -> None:
    whole = Kept(wal_data(encode(ROWS[0]), 100))
    gone = weakref.ref(whole)
    frame = LargeFrame(memoryview(whole))
    del whole
    message = read(frame)
    assert gone() is not None
    del message
    gc.collect()
    assert gone() is None
    assert frame


def test_a_frame_is_as_large_as_what_came_until_that_is_taken() -> None:
    whole = wal_data(encode(ROWS[0]), 100)
    frame = LargeFrame(memoryview(whole))
    assert frame.size == len(whole) > len(frame)
    frame.take()
    assert frame.size == len(frame)


def test_a_value_is_large_above_a_page_of_text() -> None:
    found = read(framed(encode(Insert(7, ["a" * 4096, "b" * 4097], False))))
    assert isinstance(found, Insert)
    assert found.new[0] == "a" * 4096
    assert not isinstance(found.new[0], StandIn)
    assert isinstance(found.new[1], StandIn)
    assert LARGE_FRAME == 1 << 20  # a row of fewer bytes is not worth it
