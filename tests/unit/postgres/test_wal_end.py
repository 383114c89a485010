"""An LSN to stream up to: as given, or the end of the WAL."""

import pytest

from walstream.postgres.wal_end import before_header, resolve


def test_an_lsn_is_taken_as_it_is() -> None:
    assert resolve("host=/nowhere", "1/2A") == (1 << 32) + 0x2A


@pytest.mark.parametrize(
    ("end", "wanted"),
    [
        (0x2000000, 0x2000000),
        (0x2000018, 0x2000000),  # the header of a page
        (0x2000028, 0x2000000),  # of a segment's first page
        (0x2000029, 0x2000029),
        (0x2001FF8, 0x2001FF8),
    ],
)
def test_a_header_alone_does_not_count(end: int, wanted: int) -> None:
    assert before_header(end, 8192) == wanted
