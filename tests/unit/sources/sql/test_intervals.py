"""Intervals of keys: what was missing, and how it is asked for."""

import pytest

from walstream.sources.sql.intervals import missing, ranges


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
