"""Rows as one snapshot saw them."""

import pytest

from walstream.op import Table
from walstream.sources.postgres.incremental.chunk import (
    KeyChunk,
    Visibility,
)


def test_one_goes_on_behind_the_key_of_the_last_row_in_the_keys_order() -> None:
    table = Table("s", "t", ("a", "v", "b"), key=(0, 2))
    rows: list[list[str | None]] = [["1", None, "x"], ["2", "v", "y"]]
    chunk = KeyChunk(table, rows, (2, 0), Visibility(1), 0, last=True)
    assert chunk.names == ("b", "a")
    assert chunk.end(1) == ("x", "1")
    assert chunk.end(2) == ("y", "2")
    assert "'x'" not in repr(chunk)


def test_it_reads_what_the_server_prints() -> None:
    seen = Visibility.of("743:751:743,749")
    assert [xid for xid in range(740, 754) if seen.sees(xid)] == [
        *(740, 741, 742, 744, 745, 746, 747, 748, 750),
    ]
    assert Visibility.of("751:751:").sees(750)


@pytest.mark.parametrize(
    ("xid", "claim"),
    [((1 << 32) - 1, True), (0, True), (3, False), (4, True), (5, False), (90, False)],
)
def test_the_streams_32_bits_mean_the_nearest_number(xid: int, claim: bool) -> None:
    epoch = 7 << 32
    assert Visibility(epoch + 5, [epoch + 3]).sees(xid) is claim


def test_all_below_a_number_are_seen_when_the_oldest_that_runs_is_above() -> None:
    assert Visibility.of("743:751:743,749").sees_all_below(743)
    assert not Visibility.of("743:751:743,749").sees_all_below(744)
    assert Visibility.of("751:751:").sees_all_below(751)
    assert not Visibility.of("751:751:").sees_all_below(752)
