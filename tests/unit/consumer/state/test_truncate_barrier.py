"""A TRUNCATE runs once, when all partitions are there; who waits is told."""

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from consumer.group.assigned_partition import AssignedPartition, Place
from consumer.group.buffer import Budget
from consumer.handler import Transaction
from consumer.op import ConsumerRecord, Op
from consumer.state import truncate_barrier as barriers
from consumer.state.advisory_lock import lock_key
from consumer.state.partition_state import PartitionState
from consumer.state.position import AppliedPosition
from consumer.state.schema import Tables
from consumer.state.truncate_barrier import Barrier, Crossings, Turn
from tests.simulation.target import SimTarget, Tx
from tests.simulation.target_session import Rows
from tests.simulation.target_state import OF
from tests.simulation.world import World
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


class LateGroup:
    """A group of two partitions that began behind the first record of the second.

    The first one had records up to offset 9 then; the second one is at its end.
    """

    def __init__(self, late: int = 1) -> None:
        self.before: dict[str, Callable[[], None]] = {}  # statements, once
        self._target = SimTarget(cast("World", None))
        self._tables = cast("Tables", SimpleNamespace(execute=self._execute))
        state = PartitionState("g", Place("t", 0), self._tables)
        with self._transaction() as tx:
            begins = {late: (7, 9), 1 - late: (0, 9)}
            state.begin(cast("Transaction", tx), begins, None)

    def _execute(self, tx: Tx, statement: str, values: object) -> Rows:
        self.before.pop(statement, lambda: None)()
        return OF[statement](tx, values)

    @contextmanager
    def _transaction(self) -> Iterator[Tx]:
        tx = Tx(self._target, lambda: None)
        yield tx
        tx.commit()

    def barrier(self, number: int, lsn: int, lacking: int | None = None) -> Barrier:
        state = PartitionState("g", Place("t", number), self._tables)
        op = Op.of(truncate(lsn, 2), ConsumerRecord("t", 0, lsn // 100, None, b""))
        absent = frozenset({lacking} if lacking is not None else ())
        return Barrier(state, op, "1/db/0", absent)

    def meet(self, number: int, lsn: int, lacking: int | None = None) -> Turn:
        """Let a partition arrive, run it where that is its turn, and move on."""
        barrier = self.barrier(number, lsn, lacking)
        with self._transaction() as tx:
            turn = barrier.arrive(cast("Transaction", tx))
            if turn is Turn.RUN:
                barrier.ran(cast("Transaction", tx))
            if turn in {Turn.RUN, Turn.PASS}:
                self._move(tx, number, lsn)
        return turn

    def _move(self, tx: Tx, number: int, lsn: int) -> None:
        row = ("id", str(lsn), "0", lsn // 100 + 1, None, "1/db/0")
        tx.put("state", ("g", "t", number), row)

    def apply(self, number: int, lsn: int) -> None:
        """Let a row of a partition take effect."""
        with self._transaction() as tx:
            self._move(tx, number, lsn)

    def backfill(self, number: int) -> None:
        """Let a backfilled row of a partition take effect."""
        with self._transaction() as tx:
            tx.put("snapshot", ("g", "t", number, "90", 1), 0)

    def run_elsewhere(self, lsn: int) -> None:
        """Let another member run it, who waits for nobody."""
        with self._transaction() as tx:
            self.barrier(0, lsn).ran(cast("Transaction", tx))

    def lock_elsewhere(self) -> None:
        """Let another member run one, for as long as it takes."""
        other = Tx(self._target, lambda: None)
        assert other.try_advise(lock_key("g", "t", "truncate"))

    def ask(self, barrier: Barrier) -> tuple[frozenset[tuple[str, str]], set[int]]:
        """Return where others wait, and who may have lost it; arrive nowhere."""
        tx = Tx(self._target, lambda: None)
        barrier.arrive(cast("Transaction", tx))
        earlier = barrier.earlier(cast("Transaction", tx))
        late = {*barrier.late_offsets(cast("Transaction", tx))}
        tx.roll_back()
        return earlier, late

    @property
    def marks(self) -> list[tuple[str, int]]:
        kept = self._target.relation("barrier").committed()
        return sorted((one[2], one[-1]) for one in kept if one[-1] < -1)


def test_what_was_deleted_elsewhere_is_passed_where_nothing_came_before() -> None:
    group = LateGroup()
    group.apply(1, 800)
    assert group.meet(0, 100) is Turn.PASS
    assert group.meet(0, 100) is Turn.PASS  # it is noted
    assert group.marks == [("100", -2)]


def test_one_that_follows_it_is_passed_too() -> None:
    group = LateGroup()
    group.apply(1, 800)
    for lsn in (100, 200, 300):
        assert group.meet(0, lsn) is Turn.PASS
        assert group.marks == [(str(lsn), -2)]


@pytest.mark.parametrize("chunk", [False, True])
def test_one_behind_a_row_is_not_passed(*, chunk: bool) -> None:
    group = LateGroup()
    group.apply(1, 800)
    assert group.meet(0, 100) is Turn.PASS
    if chunk:
        group.backfill(0)
    else:
        group.apply(0, 200)
    assert group.meet(0, 300) is Turn.BEHIND


def test_one_that_was_there_when_the_group_began_is_run() -> None:
    """The other one is beyond it: walstream died while it sent it."""
    group = LateGroup()
    group.apply(1, 1800)
    assert group.meet(0, 1000) is Turn.RUN
    assert group.marks == []


def test_one_that_a_partition_lacks_is_run_unless_rows_of_it_took_effect() -> None:
    group = LateGroup()
    assert group.meet(0, 100) is Turn.WAIT
    assert group.meet(0, 100, lacking=1) is Turn.RUN
    assert group.marks == [("100", -2)]
    assert group.meet(0, 200) is Turn.WAIT
    group.apply(1, 800)
    assert group.meet(0, 200) is Turn.PASS
    group.apply(0, 250)
    group.backfill(1)
    assert group.meet(0, 300, lacking=1) is Turn.BEHIND


def test_one_that_is_run_behind_a_row_leaves_no_mark() -> None:
    group = LateGroup()
    group.apply(0, 50)
    assert group.meet(0, 100, lacking=1) is Turn.RUN
    assert group.marks == []
    group.apply(1, 800)
    assert group.meet(0, 200) is Turn.BEHIND


def test_who_waits_knows_where_others_wait_and_which_began_late() -> None:
    group = LateGroup()
    assert group.ask(group.barrier(0, 200)) == (frozenset(), {1})
    assert group.meet(1, 100) is Turn.WAIT
    assert group.ask(group.barrier(0, 200)) == (frozenset({("100", "0")}), {1})
    assert group.ask(group.barrier(0, 1000)) == (frozenset({("100", "0")}), set())


def test_which_partition_has_nothing_before_it_is_noted() -> None:
    group = LateGroup(late=0)
    group.apply(0, 800)
    assert group.meet(1, 100) is Turn.PASS
    assert group.meet(1, 200) is Turn.PASS
    assert group.marks == [("200", -3)]


def test_one_that_another_member_runs_is_waited_for() -> None:
    group = LateGroup()
    group.lock_elsewhere()
    assert group.meet(0, 100, lacking=1) is Turn.BUSY


@pytest.mark.parametrize(
    ("statement", "beyond"),
    [
        (barriers._ARRIVED, False),  # noqa: SLF001 - between two statements
        (barriers._LOCK, False),  # noqa: SLF001 - likewise
        (barriers._BEGUN_LATE, True),  # noqa: SLF001 - likewise
    ],
)
def test_one_that_was_run_meanwhile_is_passed(statement: str, *, beyond: bool) -> None:
    group = LateGroup()
    assert group.meet(0, 100) is Turn.WAIT
    if beyond:
        group.apply(0, 50)  # else it would be passed as the first
        group.apply(1, 800)
    group.before[statement] = lambda: group.run_elsewhere(100)
    assert group.meet(0, 100, lacking=None if beyond else 1) is Turn.PASS


def test_the_errors_name_what_is_waited_for_and_where() -> None:
    group = LateGroup()
    barrier = group.barrier(0, 100)
    group.ask(barrier)
    op = Op.of(truncate(100, 2), ConsumerRecord("t", 0, 1, None, b""))
    late = barrier.timeout(op, 7.5)
    assert (late.topic, late.partition, late.lsn) == ("t", 0, 100)
    assert "waited 7.5 s" in str(late)
    assert str([1]) in str(late)
    group.apply(0, 50)
    group.apply(1, 800)
    assert group.meet(0, 100) is Turn.BEHIND
    barrier.behind = [1]
    behind = barrier.begun_behind(op)
    assert (behind.topic, behind.partition) == ("t", 1)
    assert "group_id = 'g'" in behind.repair.sql
