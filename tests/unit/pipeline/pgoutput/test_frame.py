"""What a frame of CopyData is told by, as `walstream.testing.wire` makes them."""

from walstream.pipeline.pgoutput.frame import (
    HEADER_SIZE,
    WAL_DATA,
    is_row,
    keepalive,
)
from walstream.testing import wire


def test_a_message_follows_the_header() -> None:
    frame = wire.wal_data(b"payload", 7)
    assert frame[0] == WAL_DATA
    assert frame[HEADER_SIZE:] == b"payload"


def test_a_keepalive_tells_how_far_the_server_is() -> None:
    frame = wire.keepalive(1 << 40, reply=True)
    assert frame[0] != WAL_DATA
    assert keepalive(frame) == (1 << 40, 0, 1)


def test_rows_are_told_by_their_tag() -> None:
    assert {chr(tag) for tag in range(256) if is_row(tag)} == {"I", "U", "D"}
