"""One batch in one transaction: lock, handlers, position, all of it or nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import psycopg
from psycopg.pq import TransactionStatus

from consumer.error_text import COMMITTED_HINT, blamed, shown
from consumer.errors import TransactionEnded
from consumer.handler import (
    BatchHooks,
    Fatal,
    IdempotentBatchHandler,
    IdempotentHandler,
    Transaction,
    unfinished,
)
from consumer.op import Op
from consumer.state.handler_pipeline import HandlerPipeline
from consumer.state.partition_state import KnownState, PartitionState, StateRow
from consumer.state.plan import BatchPlan
from consumer.state.position import AppliedPosition, SnapshotChunk, place_in_snapshot
from consumer.state.truncate_barrier import Barrier, Turn
from consumer.state.value_store import Filling, KeyRefused, ValueStore
from walstream.errors import WalstreamError
from walstream.telemetry import runtime


class Moved(Exception):
    """Somebody else moved the state: nothing took effect."""


class Locked(Exception):
    """Somebody else works on this partition."""


class Raised(Exception):
    """The handler raised; this one's cause is what.

    `op` is the one that it had, or the first of `count` that it had at once.
    """

    def __init__(self, op: Op, cause: BaseException, count: int = 1) -> None:
        super().__init__()
        self.op = op
        self.cause = cause
        self.count = count


@dataclass(slots=True)
class BatchOutcome:
    """The state after the commit of the transaction."""

    kept: StateRow
    chunks: dict[SnapshotChunk, int] = field(default_factory=dict)
    handled: int = 0  # ops
    complete: bool = True  # else the plan was cut after `handled` ops
    turn: Turn | None = None  # at a barrier


@dataclass(frozen=True, slots=True)
class Batch:
    """Runner of the batches of one partition."""

    state: PartitionState
    handler: IdempotentHandler
    longest_s: float
    stopping: Callable[[], bool]
    hooks: BatchHooks | None = None
    batch_handler: IdempotentBatchHandler | None = None
    values: ValueStore | None = None  # None: none are kept
    pipeline: HandlerPipeline | None = None

    def read(self, tx: Transaction) -> StateRow:
        """Read the row in the transaction that has the lock; make it if need be."""
        row = self.state.read(tx)
        if self.values is not None:
            self.values.believe(tx, _position(row))
        return row

    def forget(self, tx: Transaction) -> None:
        """Forget what is kept beside the row: it is another source's."""
        self.state.forget_chunks(tx)
        if self.values is not None:
            self.values.forget(tx)

    def run(self, tx: Transaction, plan: BatchPlan, known: KnownState) -> BatchOutcome:
        """Handle a plan's ops in one transaction; raise and roll back, or commit.

        The plan may be cut short, when time is up; at least one op is handled. What is
        raised in a pipeline may be any op's.
        """
        pipeline = self.pipeline
        if pipeline is not None and not pipeline.takes(plan):
            pipeline = None
        with self._transaction(tx) as xid:
            filling = self._fill(tx, plan.ops)
            ops = plan.ops if filling is None else plan.ops[: filling.count]
            handled = self._handle(tx, ops, pipeline)
            outcome = reached(plan, known.now, handled)
            self._keep(tx, xid, known, outcome, filling)
        return outcome

    def run_barrier(
        self, tx: Transaction, plan: BatchPlan, known: KnownState, barrier: Barrier
    ) -> BatchOutcome:
        """Arrive at a Truncate; handle it or pass, when the others have arrived."""
        with self._transaction(tx) as xid:
            turn = barrier.arrive(tx)
            if turn in (Turn.WAIT, Turn.BUSY, Turn.BEHIND):
                return BatchOutcome(known.now, complete=False, turn=turn)
            outcome = reached(plan, known.now, 1)
            outcome.turn = turn
            if turn is Turn.RUN:
                self._handle(tx, plan.ops)
                barrier.ran(tx)
            # each partition forgets its own rows, where it passes
            self._keep(tx, xid, known, outcome, self._fill(tx, plan.ops))
        return outcome

    @contextmanager
    def _transaction(self, tx: Transaction) -> Iterator[str]:
        """Commit with the block; raise TransactionEnded where a handler did before.

        What it raised afterwards is not why: ops that took effect are not done again.
        """
        xid: str | None = None
        try:
            with tx.transaction():
                xid = self.lock(tx)
                yield xid
        except Raised as raised:
            if xid is not None and self.state.committed(tx, xid):
                raise _committed(raised.op, raised.count) from raised.cause
            raise

    def _fill(self, tx: Transaction, ops: list[Op]) -> Filling | None:
        """Fill rows of the ops, of as many as there is memory for."""
        if self.values is None:
            return None
        try:
            return self.values.fill(tx, ops)
        except KeyRefused as refused:
            raise Raised(refused.op, Fatal(refused.cause)) from None

    def _keep(
        self,
        tx: Transaction,
        xid: str,
        known: KnownState,
        outcome: BatchOutcome,
        filling: Filling | None,
    ) -> None:
        """Note what took effect: chunks of a snapshot, a Truncate of one too."""
        if self.values is not None and filling is not None:
            self.values.keep(tx, filling, outcome.handled)
        if not self.state.move_chunks(tx, known.chunks, outcome.chunks):
            raise Moved
        self.state.clean(tx, outcome.kept.position)
        self.move(tx, xid, known.row, outcome.kept)

    def lock(self, tx: Transaction) -> str:
        xid = self.state.lock(tx)
        if xid is None:
            raise Locked
        return xid

    def move(
        self, tx: Transaction, xid: str, before: StateRow, after: StateRow
    ) -> None:
        """Move the state in the transaction that has the lock; raise Moved."""
        if self.state.move(tx, xid, before, after):
            if self.values is not None:
                self.values.seal(tx, _position(after))
            return
        if self.state.same_transaction(tx, xid):
            raise Moved
        raise TransactionEnded(
            f"a handler committed its transaction, in {self.state.place}",
            hint="the consumer commits: a handler only returns or raises",
        ).at(*self.state.place)

    def _handle(
        self, tx: Transaction, ops: list[Op], pipeline: HandlerPipeline | None = None
    ) -> int:
        """Call the handler, until time is up or a stop is wished; give the number."""
        hooks = self.hooks
        if hooks is not None:
            _call("begin_batch", ops, lambda: hooks.begin(tx, tuple(ops)))
        if self.batch_handler is not None:
            handled = self._handle_at_once(tx, ops, self.batch_handler)
        elif pipeline is not None:
            handled = self._handle_ahead(tx, ops, pipeline)
        else:
            handled = self._handle_each(tx, ops)
        if hooks is not None:
            _call("end_batch", ops[:handled], lambda: hooks.end(tx))
        return handled

    def _handle_at_once(
        self, tx: Transaction, ops: list[Op], handler: IdempotentBatchHandler
    ) -> int:
        count = len(ops)
        try:
            returned = handler(tx, tuple(ops))
        except BaseException as error:  # sys.exit, CancelledError: theirs, too
            raise Raised(ops[0], error, count) from error
        if returned is not None:
            _refuse_unfinished(ops[0], returned)
        status = tx.pgconn.transaction_status
        if status != TransactionStatus.INTRANS:
            raise _ended(status, ops[0], count)
        return count

    def _handle_ahead(
        self, tx: Transaction, ops: list[Op], pipeline: HandlerPipeline
    ) -> int:
        deadline = runtime.monotonic() + self.longest_s
        clock, stopping = runtime.current().monotonic, self.stopping
        handled, failed = pipeline.handle(
            tx, ops, self.handler, lambda: clock() >= deadline or stopping()
        )
        if failed is not None:
            raise Raised(ops[0], failed, len(ops)) from failed
        status = tx.pgconn.transaction_status
        if status != TransactionStatus.INTRANS:
            raise _ended(status, ops[0], len(ops))
        return handled

    def _handle_each(self, tx: Transaction, ops: list[Op]) -> int:
        deadline = runtime.monotonic() + self.longest_s
        handler, stopping, clock = (
            self.handler,
            self.stopping,
            runtime.current().monotonic,
        )
        pgconn, intrans = tx.pgconn, TransactionStatus.INTRANS
        for count, op in enumerate(ops, 1):
            try:
                returned = handler(tx, op)
            except BaseException as error:  # sys.exit, CancelledError: theirs, too
                raise Raised(op, error) from error
            if returned is not None:
                _refuse_unfinished(op, returned)
            if pgconn.transaction_status != intrans:
                raise _ended(pgconn.transaction_status, op)
            if clock() >= deadline or stopping():
                return count
        return len(ops)


def _position(row: StateRow) -> str:
    """Name all of the row that moves, so that any other move is noticed."""
    lsn, seq_id = row.position
    return f"{lsn}/{seq_id}/{row.next_offset}"


def _call(name: str, ops: list[Op], hook: Callable[[], object]) -> None:
    """Call a hook; what it raises is met as a batch handler's, at these ops.

    PostgreSQL's errors are met as those of our own statements, and ours say it all.
    """
    try:
        returned = hook()
    except (psycopg.Error, WalstreamError):
        raise
    except BaseException as error:  # sys.exit, CancelledError: theirs, too
        raise Raised(ops[0], error, len(ops)) from error
    reason = unfinished(returned)
    if reason is not None:
        raise Raised(ops[0], Fatal(f"{name}: {reason}"))


def _refuse_unfinished(op: Op, returned: object) -> None:
    """Raise for an op whose handler returned before it did anything."""
    reason = unfinished(returned)
    if reason is not None:  # no half of a batch would fare better
        raise Raised(op, Fatal(reason))


def _ended(status: int, op: Op, count: int = 1) -> Exception:
    """Return what stops at a transaction that is no longer open.

    One that failed is rolled back, and what was before the op is done again; one that
    ended may have been committed: nothing of it is done again.
    """
    if status != TransactionStatus.INERROR:
        return _committed(op, count)
    error = TransactionEnded(
        f"the handler continued after an error of PostgreSQL, at {shown(op)}",
        hint="raise the error, or run what may fail inside: with tx.transaction():",
    )
    return Raised(op, blamed(error, op), count)


def _committed(op: Op, count: int) -> TransactionEnded:
    among = f", or one of the {count - 1} after it" if count > 1 else ""
    error = TransactionEnded(
        f"the handler ended its transaction, at {shown(op)}{among}",
        hint=COMMITTED_HINT,
    )
    return blamed(error, op)


def reached(plan: BatchPlan, before: StateRow, handled: int) -> BatchOutcome:
    """Return where the state is after so many of the plan's ops."""
    complete = handled == len(plan.ops)
    last, chunks = None, {}
    for op in plan.ops[:handled]:
        if not op.exact:
            continue
        if op.snapshot:
            chunk, index = place_in_snapshot(op.lsn, op.seq_id)
            chunks[chunk] = index
        else:
            last = op
    position = (
        before.position if last is None else AppliedPosition(last.lsn, last.seq_id)
    )
    # what was skipped between the ops is seen through, too
    end = plan.next_offset if complete else plan.ops[handled].record.offset
    return BatchOutcome(
        replace(before, position=position, next_offset=end), chunks, handled, complete
    )
