"""Intervals of keys: what was missing, and how it is asked for."""

import pytest

from walstream.sources.sql.intervals import count_keys, missing, outside, ranges


@pytest.mark.parametrize(
    ("low", "high", "keys", "expected"),
    [
        (0, 3, [1, 2, 3], []),
        (0, 3, [], [(1, 3)]),
        (0, 6, [2, 5], [(1, 1), (3, 4), (6, 6)]),
        (-4, 1, [-2], [(-3, -3), (-1, 1)]),
        (7, 7, [], []),
        (0, 10**30, [5], [(1, 4), (6, 10**30)]),
    ],
)
def test_missing_is_what_lies_between(
    low: int, high: int, keys: list[int], expected: list[tuple[int, int]]
) -> None:
    assert missing(low, high, keys) == expected


def test_neighbours_are_read_by_one_query() -> None:
    assert ranges([(1, 2), (53, 53), (105, 106)]) == [(1, 53), (105, 106)]
    assert ranges([(1, 1), (3, 3)], near=0) == [(1, 1), (3, 3)]
    assert ranges([(1, 1), (2, 3)], near=0) == [(1, 3)]
    assert ranges([]) == []


def test_keys_are_counted_with_both_ends() -> None:
    assert count_keys([(1, 1), (3, 6, "block")]) == 5
    assert count_keys([]) == 0


@pytest.mark.parametrize(
    ("cuts", "left"),
    [
        ([], [(10, 20)]),
        ([(1, 9), (21, 30)], [(10, 20)]),
        ([(1, 10)], [(11, 20)]),
        ([(20, 30)], [(10, 19)]),
        ([(10, 10), (12, 13), (20, 20)], [(11, 11), (14, 19)]),
        ([(1, 2), (11, 11), (19, 25)], [(10, 10), (12, 18)]),
        ([(10, 20)], []),
        ([(1, 30)], []),
        ([(10, 19)], [(20, 20)]),
    ],
)
def test_what_is_left_lies_outside_of_the_cuts(
    cuts: list[tuple[int, int]], left: list[tuple[int, int]]
) -> None:
    assert list(outside((10, 20), cuts)) == left
