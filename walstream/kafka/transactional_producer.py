"""The producer of a transactional delivery: records in Kafka's transactions.

Each has whole transactions of the source, and their position. Its end may take a while:
a thread waits for it, and what comes meanwhile is held, as where there is no room. A
record counts as delivered when its Kafka transaction is committed.

The last producer with a transactional.id is its only one: what an older one has open is
aborted, and it can commit nothing more.
"""

import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

import structlog
from confluent_kafka import KafkaException

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Restart, Transient
from walstream.kafka.errors import failure
from walstream.kafka.fencing import successor
from walstream.kafka.ordered_producer import Alone, OrderedProducer
from walstream.kafka.position_reader import read_position
from walstream.kafka.topic import Topic
from walstream.kafka.transaction_plan import PositionBook
from walstream.pipeline.ledger import Counted
from walstream.records.record_size import Headers
from walstream.telemetry import runtime
from walstream.telemetry.fields import SINK
from walstream.telemetry.meter import SinkMeter

_TRY_S: Final = 1.0  # one attempt of a call that waits for the coordinator
_log = structlog.get_logger()


class _Batch(Counted):
    """One Kafka transaction: `undelivered` are its own records on their way."""

    __slots__ = ("began", "is_sealed", "shares")

    def __init__(self) -> None:
        super().__init__()
        self.began = 0.0  # when its first record came
        self.is_sealed = False  # has it the position?
        self.shares: dict[Counted, int] = {}  # its records, in order of the source

    def is_whole(self, book: PositionBook) -> bool:
        """Return whether all of its shares are whole."""
        for counted, records in reversed(self.shares.items()):
            if not book.is_whole(counted, records):
                return False
        return True


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
    ) -> None:
        """Fence those before, and read what they committed, in a thread.

        `given` are the operator's properties, `client` a reader's; `positions` returns
        the topic of positions.
        """
        plan = book.plan
        super().__init__(sink, properties, meter, hurries=hurries)
        self._sink = sink
        self._given = given
        self._client = client
        self._book = book
        self._positions = positions
        self._plan = plan
        self._part_after_s = plan.timeout_ms / 2000
        self._closing = runtime.event()
        self._batch = _Batch()
        self._due = 0.0  # when the next Kafka transaction may end
        self._turns = False  # does the first that is held begin the next one?
        self._parts = False  # does it end within a transaction of the source?
        self._said_parts: Counted | None = None
        # not `_thread`, which compiled is a word of C
        self._waiter = runtime.thread_pool(1, thread_name_prefix="transactions")
        self._opening: Future[Any] | None = self._waiter.submit(self._open)
        self._ending: Future[Any] | None = None

    @property
    def in_flight(self) -> int:
        """Count of records and of the producer's own requests in flight."""
        return len(self._producer) + len(self._batch.shares)

    def _open(self) -> bytes | None:
        stopped = self._closing.is_set
        for name in self._plan.others:
            other = successor(self._given, name)
            self._until_done(f"fencing {name!r}", other.init_transactions)
        self._until_done("beginning transactions", self._producer.init_transactions)
        key = self._plan.id.encode()
        return read_position(self._client, self._plan.topic, key, stopped)

    def _until_done(self, doing: str, call: Callable[[float], object]) -> None:
        """Call it until it has an answer; raise what it fails with for good."""
        while not self._closing.is_set():
            try:
                call(_TRY_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise failure(error.args[0], doing) from error
            else:
                return
        raise Transient(f"{doing}: the sink was closed")

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
        if self._turns:
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

    def _is_through(self) -> bool:
        """Return whether the thread is through with what it does, and go on then."""
        if self._opening is not None:
            if not self._opening.done():
                return False
            opening, self._opening = self._opening, None
            self._take(opening.result())
        elif self._ending is not None:
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
        batch, self._batch = self._batch, _Batch()
        for transaction, count in batch.shares.items():
            transaction.undelivered -= count
        self._turns = self._parts = False
        if self._trouble.is_on:
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
        self._fresh = True
        alone = Alone()
        alone.produce = partial(
            self._produce_in,
            transaction,
            topic,
            value,
            key,
            partition,
            timestamp_ms,
            headers,
            alone,
        )
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
        """Produce one record in the Kafka transaction that its own is in.

        False: it has to wait, as for the next Kafka transaction.
        """
        if self._opening is not None or self._ending is not None:
            return False
        batch = self._batch
        count = batch.shares.get(transaction)
        if count is None:
            if batch.shares:
                if self._turns or self._ends_before(batch):
                    self._turns = True
                    return False
            elif not self._begin(batch):
                return True  # it failed: all comes again
            count = batch.shares[transaction] = 0
        report = self._callback
        if alone is not None:
            report = partial(alone.report, report)
        if not self._attempt(
            topic, value, key, partition, report, timestamp_ms, headers
        ):
            return False
        batch.undelivered += 1
        batch.shares[transaction] = count + 1
        return True

    def _ends_before(self, batch: _Batch) -> bool:
        """Return whether it ends before another transaction of the source begins."""
        last = next(reversed(batch.shares))
        ended = self._book.has_ended(last)
        return ended and (self._parts or runtime.monotonic() >= self._due)

    def _begin(self, batch: _Batch) -> bool:
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            self.fail(failure(error.args[0], "beginning a transaction"))
            return False
        batch.began = runtime.monotonic()
        self._callback = partial(self._report, batch)
        return True

    def _end(self, *, whole: bool) -> bool:
        """End the Kafka transaction, once all of it arrived; there is no room then."""
        batch = self._batch
        if batch.undelivered or self._failure is not None:
            return False
        if not batch.is_sealed:
            if whole and not batch.is_whole(self._book):
                raise Restart("records came behind the end of a transaction: a defect")
            if not self._seal(batch, whole=whole) or batch.undelivered:
                return False
        self._due = runtime.monotonic() + self._plan.interval_s
        commit = self._producer.commit_transaction
        self._ending = self._waiter.submit(
            self._until_done, "committing a transaction", commit
        )
        return False

    def _seal(self, batch: _Batch, *, whole: bool) -> bool:
        """Put the position into it, which is the last of its records; False: later."""
        position = self._book.position(batch.shares, whole=whole)
        batch.is_sealed = True
        if position is None:
            return True
        if not whole:
            self._say_parts(batch)
        topic = self._positions()
        topic.written()
        stamp = int(runtime.time() * 1000)
        key = self._plan.id.encode()
        batch.undelivered += 1
        if not self._attempt(topic, position, key, 0, self._callback, stamp, None):
            self.fail(Transient("the position of a transaction finds no room"))
            return False
        return True

    def _say_parts(self, batch: _Batch) -> None:
        last = next(reversed(batch.shares))
        if last is not self._said_parts:
            self._said_parts = last
            _log.warning(
                "a transaction is committed in parts: it takes longer than Kafka lets "
                "one be open (transaction.timeout.ms)",
                **{SINK: self._sink},
            )

    @property
    def lets_wait(self) -> bool:
        """Return False: what is not committed by now is sent again."""
        return False

    def cease(self) -> None:
        """Let what waits for the coordinator end soon: `close` follows."""
        self._closing.set()

    def close(self, wait_s: float) -> None:
        """Drop what is not committed; the next producer's begin would do it, too."""
        self.cease()
        self._waiter.shutdown(wait=True)
        is_open = bool(self._batch.shares) and self._failure is None
        super().close(wait_s)
        if is_open and not self._trouble.is_on:
            with contextlib.suppress(KafkaException):
                self._producer.abort_transaction(_TRY_S)
