"""Where the state is after a batch, and what moves none; the rest asks real servers."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from consumer.error_text import handler_failed
from consumer.errors import ConsumerStopped, TransactionEnded
from consumer.group.assigned_partition import Place
from consumer.handler import BatchHooks, Fatal, Retry, Transaction
from consumer.op import Op
from consumer.state.batch import (
    Batch,
    BatchOutcome,
    Locked,
    Moved,
    Raised,
    reached,
)
from consumer.state.handler_pipeline import HandlerPipeline
from consumer.state.partition_state import NEVER, KnownState, PartitionState, StateRow
from consumer.state.plan import BatchPlan, Planner
from consumer.state.position import AppliedPosition, SnapshotChunk
from consumer.state.row_keys import WholeRowsError
from consumer.state.truncate_barrier import Barrier, Turn
from consumer.state.value_store import KeyRefused, ValueStore
from tests.support.loads.envelope import envelope
from tests.support.loads.op_record import backfilled, insert, truncate
from tests.support.runtime import altered
from tests.unit.consumer.state.test_plan import messages, rows_of

_ROW = ["1", "1"]
_BEFORE = StateRow(uuid.UUID(int=1), AppliedPosition(3, 1), 0, "topic", "1/db/0")


def test_the_state_is_where_the_handled_ops_end() -> None:
    read = messages(
        [
            insert(4, 0, _ROW),
            backfilled(9, 2, 5, _ROW),
            insert(2, 0, _ROW),
            None,
            insert(5, 0, _ROW),
            backfilled(9, 2, 6, _ROW),
        ]
    )
    plan = Planner(Place("t", 0), _BEFORE.position, "1/db/0", lambda _: NEVER).plan(
        read, 0, 9
    )
    cut = reached(plan, _BEFORE, 2)
    assert not cut.complete
    assert cut.kept.position == (4, 0)
    assert cut.kept.next_offset == 4  # what lies between was skipped
    assert cut.chunks == {SnapshotChunk(9, 2): 5}
    whole = reached(plan, _BEFORE, 4)
    assert whole.complete
    assert whole.kept.position == (5, 0)
    assert whole.kept.next_offset == 6
    assert whole.chunks == {SnapshotChunk(9, 2): 6}
    assert whole.kept.source == _BEFORE.source


def test_debeziums_own_positions_move_none() -> None:
    """Compared with walstream's, or with others of their own, they would lose rows."""
    position = _BEFORE.position
    ops = [envelope("c", after={"id": 1}, lsn=lsn) for lsn in (900, 50)]
    ops.append(envelope("r", after={"id": 1}, lsn=9000, snapshot="true"))
    plan = Planner(Place("t", 0), position, "1/db/0", lambda _: NEVER).plan(
        rows_of(*ops), 0, 9
    )
    outcome = reached(plan, _BEFORE, 3)
    assert (outcome.kept.position, outcome.kept.next_offset) == (position, 3)
    assert not outcome.chunks


def test_debeziums_positions_hide_none_of_walstreams() -> None:
    """In a topic that walstream took over."""
    first = rows_of(envelope("c", after={"id": 1}, lsn=900))
    read = [*first, *messages([None, insert(8, 0, _ROW)])[1:]]
    plan = Planner(Place("t", 0), _BEFORE.position, "1/db/0", lambda _: NEVER).plan(
        read, 0, 9
    )
    outcome = reached(plan, _BEFORE, 2)
    assert (outcome.kept.position, outcome.kept.next_offset) == ((8, 0), 2)


def test_what_a_handler_raised_is_not_shown_with_it() -> None:
    """It may hold a row's value."""
    (op,) = plan_of(1).ops
    assert "4711" not in str(Raised(op, ValueError("4711")))


def plan_of(count: int) -> BatchPlan:
    read = messages([insert(at + 4, 0, _ROW) for at in range(count)])
    return Planner(Place("t", 0), _BEFORE.position, "1/db/0", lambda _: NEVER).plan(
        read, 0, count
    )


class LockedState:
    """A state that is ours, and that nothing may move."""

    ended = False  # its transaction, by a COMMIT

    def lock(self, _: Transaction) -> str:
        return "7"

    def committed(self, _: Transaction, xid: str) -> bool:
        return self.ended and xid == "7"


class OpenTransaction:
    def __init__(self) -> None:
        self.pgconn = SimpleNamespace(transaction_status=TransactionStatus.INTRANS)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        yield


async def work(*_: object) -> None: ...


def run(tx: OpenTransaction | None = None, **options: Any) -> None:
    batch = Batch(
        cast("PartitionState", options.pop("state", LockedState())),
        options.pop("handler", lambda *_: None),
        60,
        lambda: False,
        **options,
    )
    known = KnownState(_BEFORE, _BEFORE, {})
    batch.run(cast("Transaction", tx or OpenTransaction()), plan_of(2), known)


@pytest.mark.parametrize("name", ["handler", "batch_handler"])
@pytest.mark.parametrize(
    ("returned", "said"),
    [(work, "awaited"), (lambda *_: (one for one in "ab"), "generator")],
)
def test_an_op_whose_handler_only_returned_its_work_is_not_taken_for_handled(
    name: str, returned: Any, said: str
) -> None:
    with pytest.raises(Raised) as raised:
        run(**{name: returned})
    assert raised.value.count == 1  # and so it does not come again in halves
    assert raised.value.op.lsn == 4
    assert said in str(handler_failed(raised.value.op, raised.value.cause))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (TransactionStatus.IDLE, TransactionEnded),
        (TransactionStatus.INERROR, Raised),
    ],
)
def test_only_a_transaction_that_failed_is_done_again_up_to_its_op(
    status: TransactionStatus, kind: type[Exception]
) -> None:
    tx = OpenTransaction()

    def handle(_: Transaction, op: Op) -> None:
        if op.lsn == 5:
            tx.pgconn.transaction_status = status

    with pytest.raises(kind) as stopped:
        run(tx, handler=handle)
    error = getattr(stopped.value, "cause", stopped.value)
    assert isinstance(error, TransactionEnded)
    assert error.lsn == 5
    assert getattr(stopped.value, "count", 1) == 1


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (TransactionStatus.IDLE, TransactionEnded),
        (TransactionStatus.INERROR, Raised),
    ],
)
def test_a_batch_is_asked_for_its_transaction_as_an_op_is(
    status: TransactionStatus, kind: type[Exception]
) -> None:
    tx = OpenTransaction()

    def handle(_: Transaction, __: object) -> None:
        tx.pgconn.transaction_status = status

    with pytest.raises(kind) as stopped:
        run(tx, batch_handler=handle)
    error = getattr(stopped.value, "cause", stopped.value)
    assert isinstance(error, TransactionEnded)
    assert error.lsn == 4
    assert getattr(stopped.value, "count", 2) == 2


@pytest.mark.parametrize("name", ["handler", "batch_handler"])
def test_what_a_handler_raises_after_its_commit_is_not_why_it_stops(name: str) -> None:
    state = LockedState()

    def handle(*_: object) -> None:
        state.ended = True
        raise Retry

    options: dict[str, Any] = {name: handle}
    with pytest.raises(TransactionEnded) as stopped:
        run(state=state, **options)
    assert isinstance(stopped.value.__cause__, Retry)


@pytest.mark.parametrize("name", ["begin_batch", "end_batch"])
def test_a_hook_that_only_returned_its_work_is_refused(name: str) -> None:
    begin = work if name == "begin_batch" else lambda *_: None
    end = work if name == "end_batch" else lambda *_: None
    with pytest.raises(Raised) as raised:
        run(hooks=BatchHooks(begin, end))
    assert name in str(raised.value.cause)
    assert raised.value.count == 1  # no half of the batch would fare better


class KeptState(LockedState):
    """A state that is moved, unless somebody else moved it."""

    place = Place("t", 0)
    moves = True
    moves_chunks = True
    same = True  # it is still the transaction that took the lock

    def __init__(self) -> None:
        self.done: list[str] = []
        self.row: StateRow | None = None
        self.chunks: dict[SnapshotChunk, int] = {}

    def move(self, _: Transaction, xid: str, before: StateRow, after: StateRow) -> bool:
        assert (xid, before) == ("7", _BEFORE)
        self.done.append("moved")
        self.row = after
        return self.moves

    def move_chunks(
        self, _: Transaction, before: Any, after: dict[SnapshotChunk, int]
    ) -> bool:
        assert before == {}
        self.done.append("chunks")
        self.chunks = after
        return self.moves_chunks

    def clean(self, _: Transaction, position: AppliedPosition) -> None:
        assert position >= _BEFORE.position
        self.done.append("cleaned")

    def read(self, _: Transaction) -> StateRow:
        return _BEFORE

    def forget_chunks(self, _: Transaction) -> None:
        self.done.append("chunks forgotten")

    def same_transaction(self, _: Transaction, xid: str) -> bool:
        return self.same and xid == "7"


def test_the_state_moves_with_the_effects() -> None:
    state = KeptState()
    run(state=state, handler=lambda *_: state.done.append("handled"))
    assert state.done == ["handled", "handled", "chunks", "cleaned", "moved"]
    assert state.row is not None
    assert (state.row.position, state.row.next_offset) == ((5, 0), 2)


def test_the_state_moves_with_the_effects_of_a_batch() -> None:
    state = KeptState()
    run(state=state, batch_handler=lambda _, ops: state.done.append(f"{len(ops)}"))
    assert state.done == ["2", "chunks", "cleaned", "moved"]
    assert state.row is not None
    assert (state.row.position, state.row.next_offset) == ((5, 0), 2)


@pytest.mark.parametrize("which", ["moves", "moves_chunks"])
def test_a_state_that_another_member_moved_takes_the_effects_back(which: str) -> None:
    state = KeptState()
    setattr(state, which, False)
    with pytest.raises(Moved):
        run(state=state)


def test_a_handler_that_began_another_transaction_is_told() -> None:
    state = KeptState()
    state.moves = state.same = False
    with pytest.raises(TransactionEnded, match=r"committed its transaction, in t\[0\]"):
        run(state=state)


class Locker(KeptState):
    """A state that another process works on."""

    def lock(self, _: Transaction) -> Any:
        return None


def test_a_partition_that_another_process_works_on_is_left_alone() -> None:
    state = Locker()
    with pytest.raises(Locked):
        run(state=state, handler=lambda *_: state.done.append("handled"))
    assert state.done == []


class AtBarrier:
    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.ran_at: list[int] = []
        self.handled: list[int] = []

    def arrive(self, _: Transaction) -> Turn:
        return self.turn

    def ran(self, _: Transaction) -> None:
        self.ran_at.append(len(self.handled))


def at_barrier(turn: Turn) -> tuple[AtBarrier, KeptState, BatchOutcome]:
    """Meet a Truncate of a snapshot, which has a place in a chunk."""
    op = truncate(9, 1)
    op.snapshot, op.seq_id = True, (2 << 32) + 5
    plan = Planner(Place("t", 0), _BEFORE.position, "1/db/0", lambda _: NEVER).plan(
        messages([op]), 0, 9
    )
    barrier, state = AtBarrier(turn), KeptState()
    batch = Batch(
        cast("PartitionState", state),
        lambda _, one: barrier.handled.append(one.lsn),
        60,
        lambda: False,
    )
    outcome = batch.run_barrier(
        cast("Transaction", OpenTransaction()),
        plan,
        KnownState(_BEFORE, _BEFORE, {}),
        cast("Barrier", barrier),
    )
    return barrier, state, outcome


@pytest.mark.parametrize("turn", [Turn.RUN, Turn.PASS])
def test_a_truncate_is_handled_by_the_last_and_kept_by_all(turn: Turn) -> None:
    barrier, state, outcome = at_barrier(turn)
    runs = turn is Turn.RUN
    assert barrier.handled == ([9] if runs else [])
    assert barrier.ran_at == ([1] if runs else [])
    assert outcome.turn is turn
    assert outcome.complete
    # else a replay would run it again, and skip the rows behind it
    assert state.chunks == {SnapshotChunk(9, 2): 5}
    assert state.row is not None
    assert state.row.next_offset == 1


@pytest.mark.parametrize("turn", [Turn.WAIT, Turn.BUSY])
def test_who_waits_at_a_truncate_moves_nothing(turn: Turn) -> None:
    barrier, state, outcome = at_barrier(turn)
    assert (barrier.handled, barrier.ran_at, state.done) == ([], [], [])
    assert (outcome.turn, outcome.complete, outcome.handled) == (turn, False, 0)
    assert outcome.kept == _BEFORE


def test_time_that_is_up_and_a_stop_end_a_batch_behind_the_op_at_hand() -> None:
    for longest_s, stopping in ((0.0, False), (60.0, True)):
        state = KeptState()
        batch = Batch(
            cast("PartitionState", state),
            lambda *_: None,
            longest_s,
            lambda stopping=stopping: stopping,  # type: ignore[misc]  # its own
        )
        tx = cast("Transaction", OpenTransaction())
        with altered(monotonic=lambda: 5.0):
            outcome = batch.run(tx, plan_of(2), KnownState(_BEFORE, _BEFORE, {}))
        assert (outcome.handled, outcome.complete) == (1, False)
        assert outcome.kept.next_offset == 1


class Values:
    """A store of values that tells what is asked of it."""

    def __init__(self, state: KeptState, most: int = 9) -> None:
        self._state, self._most = state, most
        self.refused: KeyRefused | None = None

    def fill(self, _: Transaction, ops: list[Op]) -> Any:
        if self.refused is not None:
            raise self.refused
        self._state.done.append(f"filled {len(ops)}")
        return SimpleNamespace(count=min(self._most, len(ops)))

    def keep(self, _: Transaction, filling: Any, handled: int) -> None:
        self._state.done.append(f"kept {handled} of {filling.count}")

    def seal(self, _: Transaction, position: str) -> None:
        self._state.done.append(f"sealed {position}")

    def believe(self, _: Transaction, position: str) -> None:
        self._state.done.append(f"believed {position}")

    def forget(self, _: Transaction) -> None:
        self._state.done.append("forgotten")


def test_values_are_filled_before_the_handler_and_sealed_with_the_state() -> None:
    state = KeptState()
    values = cast("ValueStore", Values(state, most=1))
    run(state=state, values=values, handler=lambda *_: state.done.append("handled"))
    assert state.done == [
        *("filled 2", "handled", "kept 1 of 1", "chunks", "cleaned", "moved"),
        "sealed 4/0/1",  # of two ops one was filled
    ]


def test_an_op_of_which_no_values_can_be_kept_stops_the_consumer() -> None:
    state = KeptState()
    values = Values(state)
    op = plan_of(1).ops[0]
    values.refused = KeyRefused(op, WholeRowsError("no key"))
    with pytest.raises(Raised) as raised:
        run(state=state, values=values)
    assert raised.value.op is op
    assert isinstance(raised.value.cause, Fatal)
    assert state.done == []


def test_a_state_that_moved_elsewhere_seals_nothing() -> None:
    state = KeptState()
    state.moves = False
    with pytest.raises(Moved):
        run(state=state, values=Values(state))
    assert state.done[-1] == "moved"


@pytest.mark.parametrize("keeps", [False, True])
def test_values_are_believed_and_forgotten_with_the_state(*, keeps: bool) -> None:
    state = KeptState()
    values = cast("ValueStore", Values(state)) if keeps else None
    batch = Batch(
        cast("PartitionState", state), lambda *_: None, 60, lambda: False, values=values
    )
    tx = cast("Transaction", OpenTransaction())
    assert batch.read(tx) == _BEFORE
    batch.forget(tx)
    values_too = ["believed 3/1/0", "chunks forgotten", "forgotten"]
    assert state.done == (values_too if keeps else ["chunks forgotten"])


class Ahead:
    """A pipeline of handlers."""

    def __init__(
        self, *, takes: bool = True, failed: BaseException | None = None
    ) -> None:
        self._takes, self._failed = takes, failed
        self.ends: list[bool] = []
        self.act: Callable[[], None] = lambda: None

    def takes(self, _: BatchPlan) -> bool:
        return self._takes

    def handle(
        self, _: Transaction, ops: list[Op], __: object, ends: Callable[[], bool]
    ) -> tuple[int, BaseException | None]:
        self.ends.append(ends())
        self.act()
        return len(ops) - 1, self._failed


@pytest.mark.parametrize("takes", [False, True])
def test_a_pipeline_has_the_ops_that_it_takes(*, takes: bool) -> None:
    state, ahead = KeptState(), Ahead(takes=takes)
    run(state=state, pipeline=ahead, handler=lambda *_: state.done.append("handled"))
    assert state.done[:2] == (["chunks", "cleaned"] if takes else ["handled"] * 2)
    assert ahead.ends == ([False] if takes else [])
    assert state.row is not None
    assert state.row.next_offset == (1 if takes else 2)


@pytest.mark.parametrize(
    ("longest_s", "stopping", "ends"),
    [(60.0, False, False), (60.0, True, True), (0.0, False, True)],
)
def test_a_pipeline_ends_in_time(
    longest_s: float, *, stopping: bool, ends: bool
) -> None:
    ahead = Ahead()
    batch = Batch(
        cast("PartitionState", KeptState()),
        lambda *_: None,
        longest_s,
        lambda: stopping,
        pipeline=cast("HandlerPipeline", ahead),
    )
    tx = cast("Transaction", OpenTransaction())
    with altered(monotonic=lambda: 5.0):
        batch.run(tx, plan_of(2), KnownState(_BEFORE, _BEFORE, {}))
    assert ahead.ends == [ends]


def test_what_failed_in_a_pipeline_may_be_any_of_its_ops() -> None:
    cause = ValueError("4711")
    with pytest.raises(Raised) as raised:
        run(state=KeptState(), pipeline=Ahead(failed=cause))
    assert (raised.value.op.lsn, raised.value.count) == (4, 2)
    assert raised.value.cause is cause


def test_a_pipeline_is_asked_for_its_transaction_as_an_op_is() -> None:
    tx, ahead = OpenTransaction(), Ahead()

    def end() -> None:
        tx.pgconn.transaction_status = TransactionStatus.IDLE

    ahead.act = end
    with pytest.raises(TransactionEnded, match="or one of the 1 after it") as stopped:
        run(tx, state=KeptState(), pipeline=ahead)
    assert stopped.value.lsn == 4
    with pytest.raises(TransactionEnded) as stopped:
        run(tx, state=KeptState())
    assert "after it" not in str(stopped.value)


@pytest.mark.parametrize("error", [psycopg.OperationalError(), ConsumerStopped("x")])
def test_errors_of_ours_and_of_the_servers_in_a_hook_are_what_they_are(
    error: Exception,
) -> None:
    def begin(*_: object) -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        run(hooks=BatchHooks(begin, lambda *_: None))
    assert raised.value is error


def test_what_a_hook_raises_is_met_as_a_batch_handlers() -> None:
    cause = ValueError("4711")

    def begin(*_: object) -> None:
        raise cause

    with pytest.raises(Raised) as raised:
        run(hooks=BatchHooks(begin, lambda *_: None))
    assert (raised.value.cause, raised.value.count) == (cause, 2)
