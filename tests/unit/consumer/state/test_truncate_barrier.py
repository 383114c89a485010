"""A TRUNCATE runs once, when all partitions are there; who waits is told."""

import gc
import weakref
from dataclasses import replace
from typing import cast

import pytest

from consumer.group.assigned_partition import AssignedPartition, Place
from consumer.group.buffer import Budget
from consumer.handler import Transaction
from consumer.op import ConsumerRecord, Op
from consumer.state.partition_state import PartitionState
from consumer.state.position import AppliedPosition
from consumer.state.schema import Tables
from consumer.state.truncate_barrier import Barrier, Crossings, Turn
from tests.support.consumer_partition import Database
from tests.support.loads.op_record import truncate

_THIS, _LATER = ("this",), ("later",)
RECORD = ConsumerRecord("t", 0, 0, None, b"")


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


class Group:
    """A topic's partitions, and the database in which they meet."""

    def __init__(self, partitions: int = 2) -> None:
        self.database = Database()
        self._partitions = partitions

    def barrier(self, number: int, lsn: int, source: str | None) -> Barrier:
        state = PartitionState("g", Place("t", number), cast("Tables", self.database))
        op = Op.of(truncate(lsn, self._partitions), RECORD)
        return Barrier(state, op, source)

    def meet(self, number: int, lsn: int = 5, source: str | None = "1/db/0") -> Turn:
        """Let a partition arrive, and run it where that is its turn."""
        barrier, tx = self.barrier(number, lsn, source), self.tx
        with self.database.transaction():
            turn = barrier.arrive(tx)
            if turn is Turn.RUN:
                barrier.ran(tx)
        return turn

    def pass_to(self, number: int, lsn: int, source: str | None = "1/db/0") -> None:
        """Let ops of a partition take effect."""
        state = PartitionState("g", Place("t", number), cast("Tables", self.database))
        with self.database.transaction():
            xid, before = state.lock(self.tx), state.read(self.tx)
            assert xid is not None
            position = AppliedPosition(lsn, 0)
            after = replace(before, position=position, source=source)
            assert state.move(self.tx, xid, before, after)

    @property
    def tx(self) -> Transaction:
        return cast("Transaction", self.database)

    @property
    def kept(self) -> int:
        return self.database.barriers


def test_the_last_one_to_arrive_runs_it_and_the_others_pass() -> None:
    group = Group(3)
    turns = [group.meet(number) for number in (0, 2, 0, 1, 0, 2, 1)]
    wait, passes = Turn.WAIT, Turn.PASS
    assert turns == [wait, wait, wait, Turn.RUN, passes, passes, passes]
    assert group.kept == 1  # that it was run


def test_who_waits_knows_for_whom() -> None:
    group = Group(4)
    group.meet(2)
    barrier = group.barrier(0, 5, "1/db/0")
    assert barrier.arrive(group.tx) is Turn.WAIT
    assert barrier.missing == [1, 3]


def test_each_truncate_is_a_barrier_of_its_own() -> None:
    group = Group()
    assert group.meet(0, 5) is Turn.WAIT
    assert group.meet(1, 6) is Turn.WAIT  # it met the first one before
    assert group.meet(0, 5) is Turn.RUN
    assert group.meet(0, 6) is Turn.RUN
    assert group.meet(1, 6) is Turn.PASS


def test_one_that_is_past_it_need_not_arrive() -> None:
    group = Group()
    group.pass_to(1, 5)
    assert group.meet(0, 5) is Turn.RUN
    assert group.meet(0, 6) is Turn.WAIT


@pytest.mark.parametrize(("first", "second"), [(None, "1/db/0"), ("1/db/0", None)])
def test_a_source_that_was_not_told_yet_is_the_same(
    first: str | None, second: str | None
) -> None:
    group = Group()
    assert group.meet(0, source=first) is Turn.WAIT
    assert group.meet(1, source=second) is Turn.RUN
    assert group.kept == 1
    assert group.meet(0, source=first) is Turn.PASS
    assert group.meet(0, source=second) is Turn.PASS


def test_another_source_has_barriers_of_its_own() -> None:
    group = Group()
    assert group.meet(0, source="1/db/0") is Turn.WAIT
    assert group.meet(1, source="1/db/1") is Turn.WAIT
    assert group.meet(0, source="1/db/1") is Turn.RUN
    assert group.meet(0, source="1/db/0") is Turn.WAIT


def test_what_all_are_long_past_is_forgotten() -> None:
    group = Group()
    for lsn in range(1, 301):
        for number in (0, 1):
            group.meet(number, lsn)
            group.pass_to(number, lsn)
    assert 10 < group.kept < 150
    late = Group()
    late.pass_to(1, 1)  # it may meet all of them again
    for lsn in range(1, 301):
        late.meet(1, lsn)
        late.meet(0, lsn)
        late.pass_to(0, lsn)
    assert late.kept == 299  # but the first, which it is past
    assert late.meet(1, 2) is Turn.PASS
