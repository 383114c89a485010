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
