"""A wait at a Truncate ends when the others lack it, or as an error."""

from typing import Any, cast

import pytest

from consumer.errors import BarrierTimeout
from consumer.group.assigned_partition import Place
from consumer.state.barrier_wait import BarrierWait
from consumer.state.topic_guard import TopicGuard
from consumer.state.truncate_barrier import Barrier
from tests.support.loads.op import make
from tests.support.runtime import altered
from walstream.op import Kind


class Ends:
    """Where Kafka's partitions end."""

    def __init__(self, **ends: int) -> None:
        self._ends = ends

    def bounds(self, place: Place) -> tuple[int, int]:
        return 0, self._ends[f"p{place.partition}"]


class Met:
    """A barrier that misses partitions 1 and 2."""

    missing = (1, 2)

    def __init__(self, offsets: dict[int, int]) -> None:
        self._offsets = offsets
        self.before: frozenset[tuple[str, str]] = frozenset()

    def earlier(self, _: Any) -> frozenset[tuple[str, str]]:
        return self.before

    def late_offsets(self, _: Any) -> dict[int, int]:
        return self._offsets

    def timeout(self, _: Any, waited_s: float) -> BarrierTimeout:
        return BarrierTimeout(f"{waited_s:g}")


@pytest.mark.parametrize(
    ("offsets", "lack"),
    [
        ({1: 5, 2: 7}, True),
        ({1: 5, 2: 6}, False),  # something is still to be read
        ({1: 5}, False),  # 2 began with its first record: it will come
    ],
)
def test_partitions_that_were_read_to_their_ends_lack_it(
    offsets: dict[int, int], *, lack: bool
) -> None:
    guard = cast("TopicGuard", Ends(p1=5, p2=7))
    wait = BarrierWait(lambda ask: ask(cast("Any", None)), guard, 300)
    op, barrier = make(Kind.TRUNCATE, "public.t"), cast("Barrier", Met(offsets))
    now = 0.0
    with altered(monotonic=lambda: now):
        assert not wait.lacking(4)
        now = 300.0
        wait.look(op, barrier)
        assert not wait.lacking(4)
        now = 300.1
        if lack:
            wait.look(op, barrier)
            assert wait.lacking(4) == {1, 2}
            assert not wait.lacking(5)  # another Truncate
        else:
            with pytest.raises(BarrierTimeout, match="300"):
                wait.look(op, barrier)


def test_a_truncate_before_is_waited_for_once_more() -> None:
    guard = cast("TopicGuard", Ends(p1=5, p2=7))
    wait = BarrierWait(lambda ask: ask(cast("Any", None)), guard, 300)
    op, met = make(Kind.TRUNCATE, "public.t"), Met({})
    barrier = cast("Barrier", met)
    now = 0.0
    with altered(monotonic=lambda: now):
        wait.lacking(4)
        met.before = frozenset({("1", "0"), ("2", "0")})
        now = 301.0
        wait.look(op, barrier)
        assert wait.lacking(4) == frozenset()
        met.before = frozenset({("2", "0")})  # one of them moved
        now = 602.0
        wait.look(op, barrier)
        met.before = frozenset()  # the other one, too: it is on its way here
        now = 903.0
        wait.look(op, barrier)
        now = 1203.0
        wait.look(op, barrier)
        now = 1203.1
        with pytest.raises(BarrierTimeout, match="300"):
            wait.look(op, barrier)
