"""Ops of a batch in psycopg's pipeline: no statement waits for the one before it.

A batch commits only if PostgreSQL refused nothing of it, whatever its handlers caught:
otherwise it is rolled back, and handled again without a pipeline, where each error is
raised by the statement that has it. So the effects are the same in both ways.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from consumer.handler import Fatal, IdempotentHandler, Transaction, unfinished
from consumer.op import Op
from consumer.state.plan import BatchPlan
from walstream.telemetry import runtime

# ops before the first look at what became of them, then twice as many, and so on: so
# that neither a time limit nor a stop waits for many slow statements
_FIRST_LOOK: Final = 25
_QUICK_S: Final = 0.1  # of a batch after which the next one is looked at later


class PipelineCursor(psycopg.Cursor[Any]):
    """Cursor whose results are there when they are looked at.

    psycopg's own tells of no rows and no columns until something is fetched.
    """

    @property
    def rowcount(self) -> int:
        self._arrive()
        return super().rowcount

    @property
    def description(self) -> list[psycopg.Column] | None:
        self._arrive()
        return super().description

    @property
    def statusmessage(self) -> str | None:
        self._arrive()
        return super().statusmessage

    def _arrive(self) -> None:
        pgconn = self.connection.pgconn
        if self.pgresult is None and pgconn.pipeline_status:
            with self.connection.pipeline():  # leaving an inner one waits for all
                pass


class _Refusals:
    """Passage of all waiting of a connection; it keeps the first error."""

    def __init__(self, wait: Callable[..., Any]) -> None:
        self._wait = wait
        self.first: psycopg.Error | None = None

    def __call__(self, *given: Any, **named: Any) -> Any:
        try:
            return self._wait(*given, **named)
        except psycopg.Error as error:
            self.first = self.first or error
            raise


class HandlerPipeline:
    """Pipeline for the ops of one partition, batch by batch."""

    def __init__(self) -> None:
        self._from = 0  # an offset: no op before it
        self._look = _FIRST_LOOK

    def takes(self, plan: BatchPlan) -> bool:
        """Return whether a plan's ops are handled here: none of a batch that failed."""
        ops = plan.ops
        return len(ops) > 1 and ops[0].record.offset >= self._from

    def refuse(self, plan: BatchPlan) -> bool:
        """Take none of a plan's ops when they come again; tell whether they were."""
        if not self.takes(plan):
            return False
        self._from = plan.next_offset
        return True

    def handle(
        self,
        tx: Transaction,
        ops: Sequence[Op],
        handler: IdempotentHandler,
        ends: Callable[[], bool],
    ) -> tuple[int, BaseException | None]:
        """Call the handler; tell for how many ops, and what failed: any of theirs.

        It ends early where `ends` says so, with what is handled by then.
        """
        count, failed, look = 0, None, self._look
        began = runtime.monotonic()
        with _hearing(tx) as refusals:
            try:
                with tx.pipeline() as pipeline, _cursors(tx):
                    for count, op in enumerate(ops, 1):
                        failed = _raised(tx, op, handler)
                        if failed is not None:
                            break
                        if count == look:
                            pipeline.sync()
                            look = 2 * count + _FIRST_LOOK
                            if ends():
                                break
            except psycopg.Error as error:
                failed = failed or error
        if runtime.monotonic() - began > _QUICK_S:
            self._look = _FIRST_LOOK
        elif count >= self._look:
            self._look *= 2
        # the server's own word comes first: a handler may have met what it caused
        return count, refusals.first or failed


def _raised(
    tx: Transaction, op: Op, handler: IdempotentHandler
) -> BaseException | None:
    """Return what a handler raised: raised on, psycopg would log what it left."""
    try:
        returned = handler(tx, op)
    except BaseException as error:  # noqa: BLE001 - sys.exit, CancelledError: theirs
        return error
    if returned is not None and (reason := unfinished(returned)) is not None:
        return Fatal(reason)
    if tx.closed:
        return psycopg.OperationalError("the connection is closed")
    return None


@contextmanager
def _hearing(tx: Transaction) -> Iterator[_Refusals]:
    """Keep the first error of all, also of those that the handler catches."""
    refusals = _Refusals(tx.wait)
    tx.wait = refusals  # type: ignore[method-assign]
    try:
        yield refusals
    finally:
        del tx.wait


@contextmanager
def _cursors(tx: Transaction) -> Iterator[None]:
    """Lend the connection its cursors; a class that the handler has set stays."""
    before = tx.cursor_factory
    if before is not psycopg.Cursor:
        yield
        return
    tx.cursor_factory = PipelineCursor
    try:
        yield
    finally:
        if tx.cursor_factory is PipelineCursor:
            tx.cursor_factory = before
