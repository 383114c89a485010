"""Where the state is after a batch, and what moves none; the rest asks real servers."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from psycopg.pq import TransactionStatus

from consumer.error_text import handler_failed
from consumer.errors import TransactionEnded
from consumer.group.assigned_partition import Place
from consumer.handler import BatchHooks, Retry, Transaction
from consumer.op import Op
from consumer.state.batch import Batch, Raised, reached
from consumer.state.partition_state import NEVER, KnownState, PartitionState, StateRow
from consumer.state.plan import BatchPlan, Planner
from consumer.state.position import AppliedPosition, SnapshotChunk
from tests.support.loads.envelope import envelope
from tests.support.loads.op_record import backfilled, insert
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
    with pytest.raises(TypeError, match=name):
        run(hooks=BatchHooks(begin, end))
