"""Intervals of integer keys: what was missing between some, what to ask for; pure."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final

Interval = tuple[int, int]  # the first and the last key

_NEAR: Final = 50  # keys between two gaps: reading them costs less than a query


def missing(low: int, high: int, keys: Sequence[int]) -> list[Interval]:
    """Find what was not there of the keys in (low, high]; `keys` ascend in it."""
    before, after = chain((low,), keys), chain(keys, (high + 1,))
    return [
        (one + 1, other - 1)
        for one, other in zip(before, after, strict=True)
        if other - one > 1
    ]


def ranges(intervals: Iterable[Interval], near: int = _NEAR) -> list[Interval]:
    """Join neighbours, which are in order, with at most `near` keys between them.

    For queries: what they return is to be filtered by the ledger again.
    """
    joined: list[Interval] = []
    for low, high in intervals:
        if joined and low - joined[-1][1] - 1 <= near:
            joined[-1] = (joined[-1][0], high)
        else:
            joined.append((low, high))
    return joined


def count_keys(intervals: Iterable[tuple[Any, ...]]) -> int:
    """Count the keys in intervals, of which whatever follows is not looked at."""
    return sum(interval[1] - interval[0] + 1 for interval in intervals)


def outside(gap: Interval, cuts: Sequence[Interval]) -> Iterator[Interval]:
    """Yield what is left of a gap without the cuts."""
    low, high = gap
    for i in range(bisect_left(cuts, low, key=itemgetter(1)), len(cuts)):
        first, last = cuts[i]
        if first > high:
            break
        if low < first:
            yield low, first - 1
        low = last + 1
    if low <= high:
        yield low, high
