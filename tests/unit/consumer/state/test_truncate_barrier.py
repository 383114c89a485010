"""Who waits at a TRUNCATE is told that it was run, and forgotten."""

import gc
import weakref

import pytest

from consumer.group.assigned_partition import AssignedPartition, Place
from consumer.group.buffer import Budget
from consumer.state.truncate_barrier import Crossings

_THIS, _LATER = ("this",), ("later",)


class Told(AssignedPartition):
    """A lane that notes that it was urged."""

    def __init__(self, number: int) -> None:
        super().__init__(Place("t", number), lambda: None, Budget())
        self.urged = 0

    def urge(self) -> None:
        self.urged += 1


@pytest.fixture
def crossings() -> Crossings:
    return Crossings()


def test_those_that_wait_there_are_told_once(crossings: Crossings) -> None:
    first, second, elsewhere = (Told(number) for number in range(3))
    crossings.wait(_THIS, first)
    crossings.wait(_THIS, second)
    crossings.wait(_LATER, elsewhere)
    crossings.run(_THIS, second)
    crossings.run(_THIS, second)
    assert [one.urged for one in (first, second, elsewhere)] == [1, 0, 0]


def test_one_waits_at_one_barrier_at_a_time(crossings: Crossings) -> None:
    """Another member may have run the first one."""
    first, second = Told(0), Told(1)
    crossings.wait(_THIS, first)
    crossings.wait(_LATER, first)
    crossings.run(_THIS, second)
    assert first.urged == 0
    crossings.run(_LATER, second)
    assert first.urged == 1


def test_one_that_was_revoked_is_not_kept(crossings: Crossings) -> None:
    lane = Told(0)
    crossings.wait(_THIS, lane)
    revoked = weakref.ref(lane)
    del lane
    gc.collect()
    assert revoked() is None
