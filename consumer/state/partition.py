"""One partition of an idempotent consumer: batch after batch, whatever happens.

What fails is rolled back, and done again: first what came before the failing op, then
that op alone. What took effect is known from the state row alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, NoReturn

import psycopg
from confluent_kafka import Message

from consumer.decoder import Decoder
from consumer.error_text import blamed, handler_failed, shown
from consumer.errors import (
    ConsumerStopped,
    HandlerFailed,
    SchemasAway,
)
from consumer.group.assigned_partition import AssignedPartition, Pause
from consumer.group.batch_limit import BatchLimit
from consumer.group.linger import Linger
from consumer.group.offset_gaps import Gaps
from consumer.handler import (
    BatchHooks,
    Fatal,
    IdempotentBatchHandler,
    IdempotentHandler,
    Retry,
)
from consumer.metrics import Measure, Metrics
from consumer.op import EnvelopeOp
from consumer.poison import OnPoison, meet
from consumer.state.barrier_wait import BarrierWait
from consumer.state.batch import Batch, BatchOutcome, Locked, Moved, Raised
from consumer.state.handler_pipeline import HandlerPipeline
from consumer.state.partition_state import PartitionState
from consumer.state.plan import BatchPlan, Planner
from consumer.state.schema import Tables
from consumer.state.session import PartitionSession, SessionOptions
from consumer.state.truncate_barrier import Barrier, Crossings, Turn
from consumer.state.value_store import ValueStore
from walstream.errors import Transient
from walstream.op import Kind
from walstream.pipeline.backoff import Backoff
from walstream.telemetry import runtime

_BARRIER_POLL_S: Final = 0.03
_BARRIER_POLL_OF_EACH_S: Final = 0.01  # so that many lanes ask no more often than few
_BUSY_POLL_S: Final = 0.03
_GAPS_REST_S: Final = 1.0
_SAME_TOPIC_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """Options that all partitions of a consumer share."""

    handler: IdempotentHandler
    on_poison: OnPoison
    metrics: Metrics
    batch: int  # ops
    batch_s: float
    barrier_s: float
    linger_s: float
    session: SessionOptions
    decoder: Decoder
    hooks: BatchHooks | None = None
    batch_handler: IdempotentBatchHandler | None = None
    pipeline: bool = False
    crossings: Crossings = field(default_factory=Crossings)


class IdempotentWork:
    """The work of a lane of an idempotent consumer."""

    def __init__(
        self,
        lane: AssignedPartition,
        options: WorkOptions,
        tables: Tables,
        values: ValueStore | None = None,
    ) -> None:
        self.wanted = options.batch
        if options.linger_s:
            lane.linger = Linger(options.linger_s, options.batch)
        self._lane = lane
        self._options = options
        self._batch = Batch(
            PartitionState(options.session.group, lane.place, tables),
            options.handler,
            options.batch_s,
            lambda: lane.stopping,
            options.hooks,
            options.batch_handler,
            values,
            HandlerPipeline() if options.pipeline else None,
        )
        self._limit = BatchLimit(options.batch)
        self._session = PartitionSession(lane, self._batch, options.session)
        self._alone = range(0)  # offsets of ops that share no batch
        self._verdict: tuple[int, ConsumerStopped] | None = None  # due at this offset
        self._backoff = Backoff(longest_s=30.0)
        self._gaps = Gaps()
        self._missing: int | None = None  # an offset that Kafka is to be asked for
        self._barrier_wait = BarrierWait(
            self._session.ask, options.session.guard, options.barrier_s
        )
        self._read_to: int | None = None  # an offset; None: nothing was read
        self._same_since = runtime.monotonic()  # the topic is the same, for sure

    def begin(self) -> None:
        with self._turn():
            self._session.begin()

    def rest(self) -> float | None:
        with self._turn():
            self._ask_for_gaps()
            seconds = self._session.rest()
            return _GAPS_REST_S if self._gaps.pending else seconds

    @property
    def holds(self) -> bool:
        return self._session.holds

    def end(self) -> None:
        with self._turn():
            self._session.end()

    def handle(self, messages: list[Message]) -> int:
        with self._turn():
            if not self._session.sure(_offset(messages[0])):
                return 0  # it sought: these come again, or never
            expected = self._session.known.now.next_offset
            if expected is not None and _offset(messages[0]) < min(
                expected, expected if self._read_to is None else self._read_to
            ):
                # Kafka went back by itself: its log was cut, or is another one
                self._session.check_topic()
            self._see_same_topic()
            self._gaps.see(messages, expected)
            self._ask_for_gaps()
            done = self._step(messages)
            if done:
                self._read_to = _offset(messages[done - 1]) + 1
            return done

    def _see_same_topic(self) -> None:
        """Raise TopicReplaced where another topic took the name, as Kafka says.

        The client goes on in it at the offset of the former one, without a word.
        """
        now, known = runtime.monotonic(), self._session.known.now
        since = now - _SAME_TOPIC_S
        if self._same_since > since:
            return
        guard, place = self._options.session.guard, self._lane.place
        with suppress(Transient):  # what was fetched can be handled while it is away
            guard.check_id(place, known.next_offset, known.topic_id, since)
        self._same_since = now

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Open a session, if one is needed, until the turn's end."""
        try:
            yield
        finally:
            self._session.give_back()

    def _ask_for_gaps(self) -> None:
        if self._missing is None:
            self._missing = self._gaps.due()
        if self._missing is not None:
            self._session.check_topic(self._missing)
            self._missing = None

    def _step(self, messages: list[Message]) -> int:
        """Do the next batch; give the number of messages that are done with."""
        session = self._session
        now = session.known.now
        planner = Planner(
            self._lane.place,
            now.position,
            now.source,
            session.index_of,
            self._alone,
            self._batch.state.reach,
            now.next_offset or 0,
            self._options.decoder,
        )
        try:
            plan = planner.plan(messages, 0, self._limit.now)
        except SchemasAway as error:
            raise Pause(error.wait_s) from None
        if plan.foreign is not None:
            session.meet_source(plan.foreign, _offset(messages[0]))
            return 0
        if plan.poison is not None:
            self._count(Measure.POISON, 1)
            meet(self._options.on_poison, *plan.poison)
        self._raise_verdict(plan)
        if not plan.ops:
            session.skipped(plan.next_offset)
            self._count(Measure.SKIPPED, plan.skipped)
            return plan.taken
        return self._try(plan, messages)

    def _try(self, plan: BatchPlan, messages: list[Message]) -> int:
        begun = runtime.monotonic()
        try:
            outcome = self._run(plan)
        except (Locked, Moved, Raised, psycopg.Error) as error:
            self._meet(plan, error)
            return 0
        self._session.committed(outcome)
        self._backoff.reset()
        self._limit.succeeded()
        self._measure(plan, outcome, runtime.monotonic() - begun)
        if outcome.complete:
            return plan.taken
        end = plan.ops[outcome.handled].record.offset
        return sum(_offset(message) < end for message in messages[: plan.taken])

    def _meet(self, plan: BatchPlan, error: Exception) -> None:
        """Meet what rolled a batch back."""
        pipeline = self._batch.pipeline
        match error:
            case Moved():
                self._session.doubt()
            case Raised() | psycopg.Error() if pipeline is not None and pipeline.refuse(
                plan
            ):
                self._session.doubt()  # it may be that it was committed
                self._count(Measure.RETRIED, 1)
            case Raised():
                self._meet_raised(plan, error)
            case psycopg.Error():
                self._meet_failed(plan, error)
            case _:
                self._session.wait_for_lock()

    def _run(self, plan: BatchPlan) -> BatchOutcome:
        session, op = self._session, plan.ops[0]
        if op.kind is not Kind.TRUNCATE or not op.partitions:
            self._tell_partitions(plan)
            return self._batch.run(session.tx, plan, session.known)
        lacking = self._barrier_wait.lacking(op.record.offset)
        source = session.known.now.source
        barrier = Barrier(self._batch.state, op, source, lacking)
        crossings = self._options.crossings
        # before it is asked: so that what is run from now on is heard of
        crossings.wait(barrier.name, self._lane)
        outcome = self._batch.run_barrier(session.tx, plan, session.known, barrier)
        if outcome.turn is Turn.WAIT:
            self._barrier_wait.look(op, barrier)
            poll_s = max(_BARRIER_POLL_S, _BARRIER_POLL_OF_EACH_S * self._lane.others)
            raise Pause(min(poll_s, self._options.barrier_s))
        if outcome.turn is Turn.BUSY:
            raise Pause(_BUSY_POLL_S)
        if outcome.turn is Turn.BEHIND:
            raise barrier.begun_behind(op)
        crossings.run(barrier.name, self._lane)
        return outcome

    def _tell_partitions(self, plan: BatchPlan) -> None:
        """Set the number of the topic's partitions in ops whose order depends on it."""
        scattered = [
            op for op in plan.ops if isinstance(op, EnvelopeOp) and op.scattered
        ]
        if scattered:
            count = self._session.topic_partitions()
            for op in scattered:
                op.topic_partitions = count

    def _meet_raised(self, plan: BatchPlan, raised: Raised) -> None:
        op, cause = raised.op, raised.cause
        if raised.count > 1:
            self._meet_divisible(plan, cause)
            return
        first = op is plan.ops[0]
        offset = op.record.offset
        self._alone = range(offset, offset + 1)
        if not isinstance(cause, Fatal) and self._session.passes(cause):
            self._recover(plan, cause)
        if isinstance(cause, Retry):
            self._count(Measure.RETRIED, 1)
            if first:
                raise Pause(self._backoff.next())
            return
        error = handler_failed(op, cause)
        if first:
            raise error
        self._verdict = (offset, error)

    def _meet_divisible(self, plan: BatchPlan, cause: BaseException) -> None:
        """Go on with half of what failed at once: one of it may be the reason."""
        if not isinstance(cause, Fatal) and self._session.passes(cause):
            self._recover(plan, cause)
        if not isinstance(cause, Exception):
            raise handler_failed(plan.ops[0], cause)
        self._limit.failed(len(plan.ops))
        if isinstance(cause, Retry):
            self._count(Measure.RETRIED, 1)
            raise Pause(self._backoff.next())

    def _meet_failed(self, plan: BatchPlan, error: psycopg.Error) -> None:
        """Meet an error of our own statements, or of the commit."""
        if self._session.passes(error):
            self._recover(plan, error)
        if self._options.batch_handler and self._limit.failed(len(plan.ops)):
            return
        if len(plan.ops) > 1:
            self._alone = range(plan.ops[0].record.offset, plan.next_offset)
            return
        op = plan.ops[0]
        what = f"{type(error).__name__}, {error.sqlstate or 'no code'}"
        failed = HandlerFailed(f"its transaction failed ({what}): {shown(op)}")
        raise blamed(failed, op) from error

    def _recover(self, plan: BatchPlan, error: BaseException) -> NoReturn:
        self._count(Measure.RETRIED, 1)
        if self._options.batch_handler is None:
            self._alone = range(plan.ops[0].record.offset, plan.next_offset)
        else:
            self._limit.failed(len(plan.ops))
        self._session.recover(error)

    def _raise_verdict(self, plan: BatchPlan) -> None:
        if self._verdict is not None and plan.next_offset > self._verdict[0]:
            raise self._verdict[1]

    def _measure(self, plan: BatchPlan, outcome: BatchOutcome, seconds: float) -> None:
        passed = outcome.turn is Turn.PASS
        self._count(Measure.HANDLED, 0 if passed else outcome.handled)
        self._count(Measure.SKIPPED, plan.skipped + passed)
        self._count(Measure.BATCH_SECONDS, seconds)

    def _count(self, measure: Measure, value: float) -> None:
        if value:
            self._options.metrics(measure, value, *self._lane.place)


def _offset(message: Message) -> int:
    return message.offset() or 0
