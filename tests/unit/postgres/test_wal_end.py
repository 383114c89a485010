"""An LSN to stream up to: no server sends into the header of a page."""

import pytest

from walstream.postgres.wal_end import before_header

PAGE, SEGMENT = 8192, 16 << 20


@pytest.mark.parametrize(
    ("end", "wanted"),
    [
        (0x2000000, 0x2000000),
        (0x2000018, 0x2000000),
        (0x2000028, 0x2000000),  # behind the header of a segment
        (0x2000029, 0x2000029),
        (0x2001FF8, 0x2001FF8),
        (0x2002000, 0x2002000),
        (0x2002018, 0x2002000),  # of a page
        (0x2002019, 0x2002019),  # a record that begins at 18 lies below it
        (0x2002028, 0x2002028),
    ],
)
def test_a_header_alone_does_not_count(end: int, wanted: int) -> None:
    assert before_header(end, PAGE, SEGMENT) == wanted
