"""Frames pass at the limit's rate, with a burst of a second; by a clock that is set."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from walstream.pipeline.pgoutput.large_value import LargeFrame
from walstream.pipeline.rate_limit import BYTES, ROWS, RateLimit

HEAD = b"w" + bytes(24)
KEEPALIVE = b"k" + bytes(17)


def frame(tag: str, size: int = 40) -> bytes:
    return (HEAD + tag.encode()).ljust(size, b"\0")


def rows(count: int, size: int = 40) -> list[bytes]:
    return [frame("I", size)] * count


class Limited:
    """A limit, and a clock that goes on when it is told."""

    def __init__(
        self, *, rows: int = 0, size: int = 0, patience_s: float = float("inf")
    ) -> None:
        self.now = 100.0
        self.limit = RateLimit(
            rows=rows, size=size, patience_s=patience_s, clock=lambda: self.now
        )

    def after(self, seconds: float, frames: list[bytes]) -> int:
        self.now += seconds
        return self.limit.take(frames, 0)


def test_a_second_passes_at_once_and_then_what_the_rate_gives() -> None:
    limited = Limited(rows=10)
    assert limited.after(0, rows(50)) == 10
    assert limited.after(0, rows(50)) == 0
    assert limited.after(0.5, rows(50)) == 5
    assert limited.after(100, rows(50)) == 10


def test_it_says_what_holds_and_for_how_long() -> None:
    limited = Limited(rows=10)
    assert (limited.limit.held_by, limited.limit.wait_s) == ("", 0)
    assert limited.after(0, rows(11)) == 10
    assert limited.limit.held_by == ROWS
    assert round(limited.limit.wait_s, 3) == 0.1
    assert round(limited.limit.held_s, 3) == 0
    limited.now += 0.06
    assert round(limited.limit.held_s, 3) == 0.06
    limited.now += 1
    assert round(limited.limit.held_s, 3) == 0.1
    assert limited.limit.held_by == ROWS
    limited.now += 0.1
    assert limited.limit.held_by == ""


def test_a_hold_is_worth_a_turn() -> None:
    limited = Limited(rows=100_000)
    assert limited.after(0, rows(100_001)) == 100_000
    assert round(limited.limit.wait_s, 3) == 0.02


def test_what_is_no_row_passes_where_rows_are_counted() -> None:
    limited = Limited(rows=1)
    frames = [frame("B"), frame("R"), frame("I"), frame("C"), KEEPALIVE, frame("B")]
    assert limited.after(0, frames) == len(frames)
    assert limited.after(0, [frame("D")]) == 0


def test_truncates_and_messages_are_rows() -> None:
    limited = Limited(rows=2)
    assert limited.after(0, [frame("T"), frame("M"), frame("M")]) == 2


def test_a_row_of_more_than_a_second_passes_alone_and_is_paid_for() -> None:
    limited = Limited(size=100)
    assert limited.after(0, [frame("I", 40), frame("I", 1000), frame("I", 40)]) == 1
    assert limited.limit.held_by == BYTES
    assert limited.after(0.4, [frame("I", 1000), frame("I", 40)]) == 1
    assert limited.after(9.3, rows(1)) == 0
    assert limited.after(0.11, rows(1)) == 1


def test_the_whole_of_a_large_frame_counts() -> None:
    limited = Limited(size=1 << 20)
    large = LargeFrame(memoryview(frame("I", 2 << 20)))
    assert limited.after(0, [large, frame("I")]) == 1
    assert round(limited.limit.wait_s, 2) == 1.02


def test_of_two_limits_the_lower_one_holds_and_the_other_pays_nothing() -> None:
    limited = Limited(rows=10, size=100)
    assert limited.after(0, rows(5)) == 2
    assert limited.limit.held_by == BYTES
    assert limited.after(10, [*rows(2), *[frame("I", 26)] * 20]) == 2
    assert limited.after(10, [frame("I", 26)] * 20) == 3


def test_a_lifted_limit_lets_all_pass_until_a_stream_begins() -> None:
    limited = Limited(rows=1)
    assert limited.after(0, rows(3)) == 1
    limited.limit.lift()
    assert limited.limit.wait_s == 0
    assert limited.after(0, rows(50)) == 50
    limited.limit.begin()
    assert limited.after(0, rows(3)) == 0


def test_a_transaction_that_is_open_for_long_passes() -> None:
    limited = Limited(rows=10, patience_s=5)
    assert limited.after(0, [frame("B"), *rows(50)]) == 11
    assert limited.after(1, rows(50)) == 10
    assert limited.after(4.1, rows(500)) == 500
    assert limited.after(0, [frame("C"), *rows(5)]) == 1
    assert limited.after(0.9, rows(5)) == 0  # no more is to be paid than a second
    assert 0 < limited.after(1.2, rows(50)) <= 10


@given(
    limit=st.integers(1, 1000),
    size=st.integers(100, 5000),
    steps=st.lists(
        st.tuples(
            st.floats(0, 3, allow_nan=False),
            st.lists(st.integers(26, 100), max_size=40),
        ),
        max_size=30,
    ),
)
def test_never_more_passes_than_the_rate_and_a_burst(
    limit: int, size: int, steps: list[tuple[float, list[int]]]
) -> None:
    limited = Limited(rows=limit, size=size)
    passed: list[tuple[float, int, int]] = [(limited.now, 0, 0)]
    waiting: list[bytes] = []
    for seconds, sizes in steps:
        waiting += [frame("I", one) for one in sizes]
        end = limited.after(seconds, waiting)
        gone, waiting = waiting[:end], waiting[end:]
        passed.append((limited.now, len(gone), sum(map(len, gone))))
    for first in range(1, len(passed)):
        for last in range(first, len(passed)):
            seconds = passed[last][0] - passed[first][0]
            window = passed[first : last + 1]
            assert sum(one[1] for one in window) <= limit * (seconds + 1) + 1e-6
            assert sum(one[2] for one in window) <= size * (seconds + 1) + 1e-6
    # nothing waits for ever: after a hold the first passes
    if waiting:
        assert limited.after(limited.limit.wait_s + 1e-6, waiting) > 0
    assert all(one[0] <= other[0] for one, other in pairwise(passed))
