"""Which transactions a snapshot sees."""

import pytest

from walstream.sources.postgres.incremental.visibility import Visibility


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
