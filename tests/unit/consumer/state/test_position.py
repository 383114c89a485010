"""Which ops took effect already."""

from hypothesis import given
from hypothesis import strategies as st

from consumer.state.position import (
    NOTHING,
    AppliedPosition,
    SnapshotChunk,
    bygone,
    place_in_snapshot,
)

_NUMBERS = st.integers(0, 2**64 - 1)


@given(_NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS)
def test_positions_are_ordered_by_lsn_then_number(
    lsn: int, seq_id: int, at_lsn: int, at_seq_id: int
) -> None:
    passed = (lsn, seq_id) <= AppliedPosition(at_lsn, at_seq_id)
    assert passed == (lsn < at_lsn or (lsn == at_lsn and seq_id <= at_seq_id))


def test_every_op_comes_after_nothing() -> None:
    assert (0, 0) == NOTHING < (1, 0)


def test_a_snapshot_rows_number_is_a_chunk_and_an_index() -> None:
    assert place_in_snapshot(28318000, 4294967303) == (SnapshotChunk(28318000, 1), 7)


def test_a_snapshot_is_long_past_after_a_gibibyte() -> None:
    assert bygone(5 << 30) == 4 << 30
    assert bygone(0) < 0  # nothing is
