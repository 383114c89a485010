"""A sink behind handlers: it gets what leaves them.

Ops are handled in batches, in order. If a handler cannot go on now, its whole batch is
handled again later and nothing of it was sent; later ops wait, and so does the loop.
Logical messages wait for the ops before them, and meet no handler.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

import structlog

from walstream.errors import HistoryError, Transient, WalstreamError
from walstream.formats.placeholder import weight
from walstream.lsn import show
from walstream.op import MessageOp, ReplicationOp, Table
from walstream.pipeline.backoff import Backoff
from walstream.pipeline.held_end import HeldEnd
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.ports import NamedSink
from walstream.pipeline.sinks.wrapper import FrontSink
from walstream.records.handlers import Out, ProducerRecord
from walstream.records.handlers.chain import Chain, Unhandled
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT, LSN, SINK, TABLE
from walstream.telemetry.throttle import Throttle

_SAY_AGAIN_S: Final = 60.0
_TURN_S: Final = 0.1  # the server has to hear of us meanwhile
_LONG_S: Final = 10.0  # of one call, in which it hears nothing
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Batching:
    """Size and interval of the batches of a handler."""

    rows: int = 500
    size: int = 16 << 20  # characters of their values: more wait for no others
    interval_s: float = 0.0  # how long the first may wait for others; 0: for its turn
    stopping: Callable[[], bool] = lambda: False  # then none waits for others


class _Waiting(NamedTuple):
    op: ReplicationOp | MessageOp
    transaction: Transaction
    size: int

    @property
    def is_old(self) -> bool:
        """Return whether it is an existing row, beside the stream."""
        return isinstance(self.op, ReplicationOp) and self.op.snapshot


_Outcome = list[Out] | Unhandled | HistoryError


class HandlerSink(FrontSink):
    """Handlers in front of another sink."""

    takes_large = False  # a handler gets whole texts

    def __init__(
        self,
        sink: NamedSink,
        chain: Chain,
        batching: Batching | None = None,
        *,
        clock: Callable[[], float] = runtime.monotonic,
    ) -> None:
        super().__init__(sink)
        self._chain = chain
        self._batching = batching or Batching()
        self._clock = clock
        self._batch: deque[_Waiting] = deque()
        self._size = 0  # of all of it
        self._handled: list[_Outcome] = []  # of the first of them
        self._failing: ReplicationOp | MessageOp | None = None  # what was sent last
        self._since = 0.0  # when the first of them came
        self._again_at = 0.0  # when what a handler could not take is tried again
        self._backoff = Backoff()
        self._throttle = Throttle(_SAY_AGAIN_S, clock)
        self._long_throttle = Throttle(_SAY_AGAIN_S, clock)
        self._end = HeldEnd()

    @property
    def waiting(self) -> bool:
        """Return whether it waits for its target, or one of its handlers."""
        return self._sink.waiting or self._again_at > 0

    @property
    def handler_waits(self) -> bool:
        return self._again_at > 0

    @property
    def in_flight(self) -> int:
        return self._sink.in_flight + len(self._batch)

    def knows(self, table: Table) -> bool:
        chain = self._chain  # what it makes of a table has other columns
        return chain.is_outbox(table) or self._sink.knows(chain.shape(table))

    def ready(self) -> bool:
        if not self._sink.ready():
            return False
        if self._batch and self._due():
            self._handle(self._clock() + _TURN_S)
        return self._has_room

    def flush(self) -> None:
        """Handle what is due, and send it: nothing else came."""
        if self._batch and self._due():
            self._handle(self._clock() + _TURN_S)
        super().flush()

    @property
    def _has_room(self) -> bool:
        return not (self._again_at or self._is_full)

    @property
    def _is_full(self) -> bool:
        batching = self._batching
        return len(self._batch) >= batching.rows or self._size >= batching.size

    def _due(self) -> bool:
        now = self._clock()
        if self._again_at:
            return now >= self._again_at
        batching = self._batching
        return (
            self._is_full
            or now - self._since >= batching.interval_s
            or batching.stopping()
        )

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        if not self._batch:
            self._since = self._clock()
        self._keep(_Waiting(op, transaction, weight(op.old) + weight(op.new)))
        if op.snapshot and not self._again_at:
            # at once: who lets rows in beside the stream hears here what refuses one
            try:
                self._handle()
            except WalstreamError as error:
                if error.retryable or self._failing is op:
                    raise
                return False  # of another, which `ready` meets again
        return self._has_room

    def send_message(self, message: MessageOp, transaction: Transaction) -> bool:
        """Send a message, or keep it behind the ops that wait."""
        if not self._batch:
            return super().send_message(message, transaction)
        self._keep(_Waiting(message, transaction, len(message.content)))
        return self._has_room

    def _keep(self, waiting: _Waiting) -> None:
        waiting.transaction.undelivered += 1
        self._end.take(waiting.transaction)
        self._batch.append(waiting)
        self._size += waiting.size

    def _handle(self, until: float = math.inf) -> None:
        """Handle the waiting ops, or as many as possible; send when all are handled.

        The loop has other work: what is left at `until` is for its next turn.
        """
        handled = self._handled
        try:
            for waiting in islice(self._batch, len(handled), None):
                handled.append(self._outcome(waiting.op))
                if self._clock() >= until and len(handled) < len(self._batch):
                    return
        except Transient as error:
            handled.clear()
            self._wait(error)
            return
        if self._again_at:
            _log.info("handlers work again", **{SINK: self.name})
        self._again_at = 0.0
        self._backoff.reset()
        self._handled = []
        for outs in handled:
            self._pass_on(self._batch[0], outs)

    def _outcome(self, op: ReplicationOp | MessageOp) -> _Outcome:
        if isinstance(op, MessageOp):
            return []
        began = self._clock()
        try:
            return list(self._chain.handle(op))
        except (Unhandled, HistoryError) as error:
            return error
        finally:
            if (took_s := self._clock() - began) >= _LONG_S:
                self._say_long(op, took_s)

    def _say_long(self, op: ReplicationOp, took_s: float) -> None:
        """Log it: what comes of it, if it was long enough, says the server alone."""
        kinds = self._chain.kinds(op.table)
        if self._long_throttle.is_due(str(kinds)):
            _log.warning(
                "a call of a handler took long: the stream stood still meanwhile",
                **{
                    SINK: self.name,
                    TABLE: op.table.full_name,
                    LSN: show(op.lsn),
                    HINT: "make it end within seconds, or raise Transient: the server "
                    "ends a connection that it has not heard of for wal_sender_timeout",
                },
                seq_id=op.seq_id,
                handlers=kinds,
                seconds=round(took_s, 1),
            )

    def _pass_on(self, waiting: _Waiting, outs: _Outcome) -> None:
        """Send the results of one op; a refused one waits, unless it is a row's."""
        op, transaction, _ = waiting
        self._failing = op
        try:
            if isinstance(op, MessageOp):
                super().send_message(op, transaction)
            elif isinstance(outs, Unhandled):
                self._skip(op, outs)
            elif isinstance(outs, HistoryError):
                raise outs
            else:
                self._send(op, transaction, outs)
        except WalstreamError as error:
            if waiting.is_old and not error.retryable:
                self._forget(waiting)
            raise
        self._forget(waiting)

    def _forget(self, waiting: _Waiting) -> None:
        transaction = waiting.transaction
        self._batch.popleft()
        self._size -= waiting.size
        if not self._batch or self._batch[0].transaction is not transaction:
            self._end.let_go(transaction)
        transaction.undelivered -= 1

    def _wait(self, error: Transient) -> None:
        self._again_at = self._clock() + self._backoff.next()
        if self._throttle.is_due(str(error.args[0])):
            _log.warning(
                "a handler cannot work now: its ops wait",
                **{SINK: self.name, ERROR: str(error.args[0])},
            )

    def _skip(self, op: ReplicationOp, error: Unhandled) -> None:
        self.tally.failed[op.table.full_name] += 1
        _log.error(
            "op is skipped: a handler does not take it",
            **{
                SINK: self.name,
                TABLE: op.table.full_name,
                LSN: show(op.lsn),
                ERROR: str(error.args[0]),
            },
            seq_id=op.seq_id,
        )

    def _send(
        self, op: ReplicationOp, transaction: Transaction, outs: list[Out]
    ) -> None:
        if not outs:
            self.tally.skipped[op.table.full_name] += 1
        for out in outs:
            if isinstance(out, ProducerRecord):
                self._sink.put(out, op, transaction)
            else:
                self._sink.send(out, transaction)
