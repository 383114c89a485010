"""The producer of a transactional delivery: records in Kafka's transactions.

Each has whole transactions of the source, and their position. A thread waits for its
end, and what comes meanwhile is held. Records are delivered when it is committed.
"""

import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

import structlog
from confluent_kafka import KafkaException

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Restart, Transient
from walstream.kafka.binding_producer import BindingProducer
from walstream.kafka.errors import failure
from walstream.kafka.leaderless import LeaderlessPartitions
from walstream.kafka.lone_record import Alone
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.topic import Topic
from walstream.kafka.transaction_batch import TransactionBatch, TransactionShare
from walstream.kafka.transaction_coordinator import TransactionCoordinator
from walstream.kafka.transaction_plan import PositionBook
from walstream.kafka.transaction_start import TransactionStart
from walstream.pipeline.ledger import Counted
from walstream.pipeline.outage import Outage
from walstream.records.record_size import Headers
from walstream.telemetry import runtime
from walstream.telemetry.fields import SINK
from walstream.telemetry.meter import SinkMeter

_TURNS: Final = 4  # times as long as a turn took, records are gathered
_MOST_S: Final = 2.0
_BACKLOG: Final = 5_000  # records under way: more than a stream in time has
_WAIT_S: Final = 0.003  # nothing else is to be done while a transaction ends
_log = structlog.get_logger()


class TransactionalProducer(OrderedProducer):
    """One producer's life: of a sink that writes in Kafka transactions."""

    def __init__(  # noqa: PLR0913 - keywords
        self,
        sink: str,
        properties: ClientProperties,
        meter: SinkMeter | None,
        *,
        hurries: bool,
        given: ClientProperties,
        client: ClientProperties,
        book: PositionBook,
        positions: Callable[[], Topic],
        written: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        """Fence those before, and read what they committed, in a thread.

        `given` are the operator's properties, `client` a reader's; `positions` returns
        the topic of positions, `written` how many partitions those of ops have.
        """
        self._plan = plan = book.plan
        super().__init__(sink, properties, meter, hurries=hurries)
        self._sink = sink
        self._clients = given, client
        self._book = book
        self._positions = positions
        self._written = written
        self._part_after_s = plan.timeout_ms / 2000
        self._coordinator = TransactionCoordinator(sink)
        self._batch = TransactionBatch()
        self._due = 0.0  # when the next Kafka transaction may end
        self._turned_at = 0.0  # when nothing more went into it
        self._is_behind = False  # were many under way then?
        self._current: Counted | None = None  # whose share is open
        self._share = TransactionShare()
        self._turns = False  # does the first that is held begin the next one?
        self._parts = False  # does it end within a transaction of the source?
        self._said_parts: Counted | None = None
        # not `_thread`, which compiled is a word of C
        self._waiter = runtime.thread_pool(1, thread_name_prefix="transactions")
        self._opening: Future[Any] | None = self._waiter.submit(self._open)
        self._ending: Future[Any] | None = None
        self._leaderless: LeaderlessPartitions | None = None

    @property
    def in_flight(self) -> int:
        """Count of records and of the producer's own requests in flight."""
        return len(self._producer) + len(self._batch.shares)

    def _made(self, properties: dict[str, object]) -> BindingProducer:
        made = BindingProducer(properties, self._trouble.hear)
        self._kafka = made.client  # the other has no transactions
        return made

    def _open(self) -> bytes | None:
        start = TransactionStart(self._kafka, self._book, *self._clients)
        found = start.open(self._written, self._coordinator)
        kafka, submit = self._kafka, self._waiter.submit
        self._leaderless = LeaderlessPartitions(start.leaderless, kafka, submit)
        return found

    def serve(self, *, busy: bool = False) -> bool:
        """Do as any producer does; end the Kafka transaction when it is time."""
        if self._opening is not None or self._ending is not None:
            self._poll(0)
            if self._failure is not None:
                raise self._failure
            if not self._is_through():
                return False
        room = super().serve(busy=busy)
        batch = self._batch
        if not batch.shares:
            return room
        if self._turns or batch.is_sealed:
            return self._end(whole=True)
        now = runtime.monotonic()
        if self._parts or now - batch.began >= self._part_after_s:
            self._parts = True
            if not self._held:
                self._end(whole=batch.is_whole(self._book))
            return False
        quiet = not (self._held or batch.undelivered) and now >= self._due
        if quiet and batch.is_whole(self._book):
            return self._end(whole=True)
        return room

    def flush(self, *, quiet: bool = True) -> None:
        """Do as any producer does, but while a Kafka transaction begins or ends."""
        if self._opening is None and self._ending is None:
            super().flush(quiet=quiet)

    def _is_through(self) -> bool:
        """Return whether the thread is through with what it does, and go on then."""
        if self._opening is not None:
            if not self._opening.done():
                return False
            opening, self._opening = self._opening, None
            self._take(opening.result())
        elif self._ending is not None:
            with contextlib.suppress(TimeoutError):
                self._ending.exception(_WAIT_S)
            if not self._ending.done():
                return False
            ending, self._ending = self._ending, None
            ending.result()
            self._settle()
        return True

    def _take(self, found: bytes | None) -> None:
        said = self._book.open(found)
        tell = _log.warning if said.is_bad else _log.info
        tell(said.text, **{SINK: self._sink}, **said.fields)

    def _settle(self) -> None:
        """Count as delivered what is committed."""
        batch, self._batch = self._batch, TransactionBatch()
        for transaction, share in batch.shares.items():
            transaction.undelivered -= share.records
        if self._is_behind:  # then the next one gathers more than the turn costs
            now = runtime.monotonic()
            turn_s = min((now - self._turned_at) * _TURNS, _MOST_S)
            self._due = max(self._due, now + turn_s)
        self._turns = self._parts = self._is_behind = False
        self._trouble.end()

    def put(  # noqa: PLR0913, PLR0917 - a record without an object for each row
        self,
        topic: Topic,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        timestamp_ms: int,
        transaction: Counted,
        headers: Headers | None = None,
    ) -> None:
        """Produce one record, now or in turn; count it in its transaction."""
        transaction.undelivered += 1
        if self._failure is not None:
            return
        self._fresh = True
        if transaction is self._current and not (
            self._held or (topic.unproven and partition in topic.unproven)
        ):
            tell = self._callback
            try:
                self._produce(
                    topic.name, value, key, partition, tell, None, timestamp_ms, headers
                )
            except (BufferError, KafkaException):
                pass  # the careful way tells which
            else:
                self._batch.undelivered += 1
                self._share.records += 1
                self._flushes.sent += 1
                return
        record = topic, value, key, partition, timestamp_ms, headers
        if self._held or not self._produce_in(transaction, *record):
            self._held.append(partial(self._produce_in, transaction, *record))

    def put_alone(  # noqa: PLR0913, PLR0917 - likewise
        self,
        topic: Topic,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        timestamp_ms: int,
        transaction: Counted,
        headers: Headers | None = None,
    ) -> None:
        """Produce one large record at a later `serve`, when its caller let go of it."""
        transaction.undelivered += 1
        if self._failure is not None:
            return
        self._fresh, alone = True, Alone()
        record = topic, value, key, partition, timestamp_ms, headers
        alone.produce = partial(self._produce_in, transaction, *record, alone)
        self._held.append(alone.attempt)

    def _produce_in(  # noqa: PLR0913, PLR0917 - as the producer takes them
        self,
        transaction: Counted,
        topic: Topic,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        timestamp_ms: int,
        headers: Headers | None,
        alone: Alone | None = None,
    ) -> bool:
        """Produce one record in the Kafka transaction of its own; False: it waits."""
        batch = self._batch
        if self._opening is not None or self._ending is not None or batch.is_sealed:
            return False
        share = batch.shares.get(transaction)
        if self._leaderless and self._leaderless.has(topic.name, partition):
            if share is None and batch.shares and batch.is_whole(self._book):
                self._turn()  # those before it need not wait for a leader
            return False
        if share is None:
            if batch.shares:
                due = self._parts or runtime.monotonic() >= self._due
                if self._turns or (due and batch.is_whole(self._book)):
                    self._turn()
                    return False
            elif not self._begin(batch):
                return True  # it failed: all comes again
            share = batch.shares[transaction] = TransactionShare()
        self._current, self._share = transaction, share
        report = partial(alone.report, self._callback) if alone else self._callback
        record = topic, value, key, partition, report, timestamp_ms, headers
        if not self._attempt(*record):
            return False
        batch.undelivered += 1
        share.records += 1
        return True

    def _turn(self) -> None:
        """Put nothing more into this Kafka transaction: the next one begins."""
        if not self._turns:
            self._turns = True
            self._turned_at = runtime.monotonic()
            self._is_behind = self._batch.undelivered >= _BACKLOG

    def _begin(self, batch: TransactionBatch) -> bool:
        try:
            self._kafka.begin_transaction()
        except KafkaException as error:
            self.fail(failure(error.args[0], "beginning a transaction"))
            return False
        self._flushes.begin()
        batch.began = runtime.monotonic()
        self._callback = partial(self.hear, batch)
        return True

    def _end(self, *, whole: bool) -> bool:
        """End the Kafka transaction, once all of it arrived; there is no room then."""
        batch = self._batch
        if batch.undelivered:
            self._poll(_WAIT_S)
        if batch.undelivered or self._failure is not None:
            return False
        if not batch.is_sealed:
            if whole and not batch.is_whole(self._book):
                raise Restart("records came behind the end of a transaction: a defect")
            if not self._seal(batch, whole=whole) or batch.undelivered:
                return False
        self._due = runtime.monotonic() + self._plan.interval_s
        ask, commit = self._coordinator.answered, self._kafka.commit_transaction
        self._ending = self._waiter.submit(ask, "committing a transaction", commit)
        return False

    def _seal(self, batch: TransactionBatch, *, whole: bool) -> bool:
        """Put the position into it, which is the last of its records; False: later."""
        position = self._book.position(batch.shares, whole=whole)
        batch.is_sealed = True
        self._current = None  # nothing more goes into it
        if position is None:
            return True
        if not whole:
            self._say_parts(batch)
        topic = self._positions()
        topic.written()
        stamp = int(runtime.time() * 1000)
        batch.undelivered += 1
        key = self._plan.key
        if not self._attempt(topic, position, key, 0, self._callback, stamp, None):
            self.fail(Transient("the position of a transaction finds no room"))
            return False
        return True

    def _say_parts(self, batch: TransactionBatch) -> None:
        last = next(reversed(batch.shares))
        if last is not self._said_parts:
            self._said_parts = last
            _log.warning(
                "a transaction is committed in parts: it takes longer than Kafka lets "
                "one be open (transaction.timeout.ms)",
                **{SINK: self._sink},
            )

    @property
    def unreachable(self) -> bool:
        """Return whether its coordinator, or Kafka at its last sign, is away."""
        return self._coordinator.outage is not None or self._trouble.is_on

    @property
    def outage(self) -> Outage | None:
        """Reason why either does not answer, as far as known."""
        return self._trouble.outage or self._coordinator.outage

    @property
    def lets_wait(self) -> bool:
        """Return False: what is not committed by now is sent again."""
        return False

    def cease(self) -> None:
        """Let what waits for the coordinator end soon: `close` follows."""
        self._coordinator.cease()

    def close(self, wait_s: float) -> None:
        """Drop what is not committed, and let it be open: the next producer ends it.

        An abort would end, too, what an earlier commit left open in a partition that
        had no leader (see `unmarked_record`), and lose it. A start looks for it first.
        """
        self.cease()
        self._waiter.shutdown(wait=True)
        super().close(wait_s)
