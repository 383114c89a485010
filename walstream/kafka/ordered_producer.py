"""The ordered producer: records in order, each delivery accounted for.

After the first failed delivery nothing more is produced: the producer is purged and
closed, and the stream starts again from the position. So a later record never overtakes
an earlier one.

A broker that refuses a producer's first batch in a partition may take its second: then
librdkafka reports the first as delivered, too (docs/decisions/0108). So the next record
waits for the first one's acknowledgement; one without an offset is not delivered.
"""

import contextlib
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message

from walstream.config.librdkafka import ClientProperties
from walstream.errors import WalstreamError
from walstream.kafka.binding_producer import BindingProducer
from walstream.kafka.errors import failure, undelivered, unfit
from walstream.kafka.flush_policy import FlushPolicy
from walstream.kafka.lone_record import Alone
from walstream.kafka.native_producer import NativeProducer, native_producer
from walstream.kafka.oauth_token import prepared
from walstream.kafka.producer_trouble import ProducerTrouble
from walstream.kafka.topic import Topic
from walstream.kafka.warmup import acquaint
from walstream.pipeline.ledger import Counted
from walstream.pipeline.outage import Outage
from walstream.records.record_size import Headers
from walstream.telemetry import runtime
from walstream.telemetry.meter import SinkMeter

_LAST_WORDS_S: Final = 1.0
_POLL_S: Final = 0.05
_FLUSH_S: Final = 0.001


class OrderedProducer:
    """One producer's life. A record that finds no room is held, and so is the next."""

    def __init__(
        self,
        sink: str,
        properties: ClientProperties,
        meter: SinkMeter | None = None,
        *,
        hurries: bool = False,
    ) -> None:
        """Count the records that Kafka takes in `meter`.

        One that `hurries` sends what it has when few come, whatever linger.ms is; where
        none has room, or waits for the first in its partition, each does.
        """
        self._trouble = ProducerTrouble(sink, properties)
        self._meter = meter or SinkMeter()
        self._meter.counts_records = True
        try:
            self._producer = self._made(prepared(properties))
        except KafkaException as error:
            raise unfit(error, f"sinks.{sink}.producer", properties) from error
        self._produce = self._producer.produce
        self._held: deque[Callable[[], bool]] = deque()
        self._failure: WalstreamError | None = None
        self._counted: Counted | None = None  # what the callback counts in
        self._callback: Any = None
        self._flushes = FlushPolicy(hurries=hurries)
        self._fresh = False
        self._asked = False
        self.has_doubts = False  # may a partition lack a record before its last ones?

    def _made(self, properties: dict[str, object]) -> BindingProducer | NativeProducer:
        hear = self._trouble.hear
        native = native_producer(properties, hear)
        return native if native is not None else BindingProducer(properties, hear)

    def acquaint(self, topic: str) -> None:
        """Get ready to send before the first record of any topic comes."""
        if not self._asked:
            self._asked = True
            acquaint(self._producer, topic)

    @property
    def in_flight(self) -> int:
        """Count of records and of the producer's own requests in flight."""
        return len(self._producer)

    @property
    def unreachable(self) -> bool:
        """Return whether Kafka was in trouble at its last sign."""
        return self._trouble.is_on

    @property
    def outage(self) -> Outage | None:
        """Reason why Kafka does not answer, as far as known."""
        return self._trouble.outage

    @property
    def has_room(self) -> bool:
        """Return whether the last record was taken, and none has failed."""
        return not self._held and self._failure is None

    @property
    def is_busy(self) -> bool:
        """Return whether anything was put since the last look, or is held."""
        return self._fresh or bool(self._held)

    def serve(self, *, busy: bool = False) -> bool:
        """Serve delivery reports, send what is held; return whether there is room.

        While others are `busy` with the same stream, only what has no room hurries.
        Raises what stops this producer for good.
        """
        self.flush(quiet=not (busy or self.is_busy))
        if self._failure is not None:
            raise self._failure
        return self._send_held()

    def flush(self, *, quiet: bool = True) -> None:
        """Send what waits: no other came, or it is time. What fails, `serve` raises."""
        self._fresh = False
        now = runtime.monotonic()
        waits = self._held or self._flushes.is_due(now, quiet=quiet)
        if waits and not self._trouble.is_on:
            self._flushes.flush(now)
            self._work(self._producer.flush, _FLUSH_S)
        else:
            self._poll(0)

    def _send_held(self) -> bool:
        """Send what is held, up to what is refused; tell whether there is room."""
        while self._held:
            attempt = self._held.popleft()
            behind, self._held = self._held, deque()  # it puts before them
            done = False
            try:
                done = attempt()
            except WalstreamError as error:
                self.fail(error)
            if not done:
                self._held.appendleft(attempt)
            behind.extendleft(reversed(self._held))
            self._held = behind
            if self._failure is not None:
                raise self._failure
            if not done:
                return False
        return True

    def _poll(self, wait_s: float) -> None:
        """Serve the callbacks."""
        self._work(self._producer.poll, wait_s)

    def _work(self, method: Callable[[float], object], wait_s: float) -> None:
        """Let the producer work. One that has failed raises through its callbacks."""
        try:
            method(wait_s)
            reported = self._producer.report(self)  # it may count some in `hear`
            self._flushes.reported += reported
        except KafkaException as error:
            self.fail(failure(error.args[0], "the producer stopped"))
            self._hear_why()

    def _hear_why(self) -> None:
        """Serve the last deliveries: their errors have the cause."""
        deadline = runtime.monotonic() + _LAST_WORDS_S
        while len(self._producer) and runtime.monotonic() < deadline:
            with contextlib.suppress(KafkaException):  # it says so again
                self._producer.poll(_POLL_S)
                self._producer.report(self)

    def hold(self, attempt: Callable[[], bool]) -> None:
        """Try this at each `serve` until it is True; what it puts goes in its place."""
        self._held.append(attempt)

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
        """Produce one record, now or in turn; count it in its transaction.

        Behind one that failed it is counted, and stays so: it comes again.
        """
        if self._failure is not None:
            transaction.undelivered += 1
            return
        if self._counted is not transaction:
            self._counted = transaction
            self._callback = self._producer.callback(transaction, self)
        callback = self._callback
        self._fresh = True
        transaction.undelivered += 1
        if not self._held and not (topic.unproven and partition in topic.unproven):
            try:
                # by position: keywords cost a third of the call
                name = topic.name
                self._produce(
                    name, value, key, partition, callback, None, timestamp_ms, headers
                )
            except (BufferError, KafkaException):
                pass  # the careful way tells which
            else:
                self._flushes.sent += 1
                return
        # until it is produced its partition may come in doubt: then this is called
        callback = partial(self.hear, transaction)
        attempt = partial(
            self._attempt, topic, value, key, partition, callback, timestamp_ms, headers
        )
        if self._held or not attempt():
            self._held.append(attempt)

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
        """Produce one large record at a later `serve`, when its caller let go of it.

        Until it is delivered there is no room: its copies are not there twice.
        """
        transaction.undelivered += 1
        if self._failure is not None:
            return
        self._fresh = True
        alone = Alone()
        report = partial(alone.report, partial(self.hear, transaction))
        alone.produce = partial(
            self._attempt, topic, value, key, partition, report, timestamp_ms, headers
        )
        self._held.append(alone.attempt)

    def _attempt(  # noqa: PLR0913, PLR0917 - as the producer takes them
        self,
        topic: Topic,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        callback: Callable[..., None],
        timestamp_ms: int,
        headers: Headers | None,
    ) -> bool:
        """Pass one record to the producer; return False if it has to wait.

        That is if the queue is full, or the partition's first record is on its way.
        """
        if is_first := partition in topic.unproven:
            if partition in topic.proving:
                return False
            callback = partial(self._report_first, topic, partition, callback)
        try:
            name = topic.name
            self._produce(
                name, value, key, partition, callback, None, timestamp_ms, headers
            )
        except BufferError:
            return False
        except KafkaException as error:
            self.fail(failure(error.args[0], f"producing to {topic.name!r}"))
        else:
            self._flushes.sent += 1
            if is_first:
                topic.proving.add(partition)
        return True

    def _report_first(
        self,
        topic: Topic,
        partition: int,
        report: Callable[..., None],
        error: KafkaError | None,
        message: Message,
    ) -> None:
        """Count the first delivery in a partition, where others wait for it."""
        topic.proving.discard(partition)
        report(error, message)
        if self._failure is None:
            topic.unproven.discard(partition)

    def hear(
        self, transaction: Counted, error: KafkaError | None, message: Message
    ) -> None:
        """Count one delivery. Called by the producer: must not raise."""
        self._flushes.reported += 1
        if error is None and message.offset() is not None:
            self.count(transaction, 1)
        else:
            self.miss(error, message.topic(), message.partition())

    def count(self, transaction: Counted, records: int) -> None:
        """Count so many deliveries."""
        transaction.undelivered -= records
        self._meter.records += records
        if self._trouble.is_on:
            self._trouble.end()

    def miss(
        self, error: KafkaError | None, topic: str | None, partition: int | None
    ) -> None:
        """Note that a record is not delivered, or not known to be: nothing follows."""
        if self._failure is None:
            self._producer.purge()  # what is behind it is not to be taken
        self.has_doubts = self.has_doubts or error is None
        self.fail(undelivered(error, topic, partition))

    def answers(self) -> None:
        """Note that Kafka's trouble is over."""
        self._trouble.end()

    def fail(self, error: WalstreamError) -> None:
        """Remember what stops this producer: a lasting cause before a passing one."""
        if self._failure is None or (self._failure.retryable and not error.retryable):
            self._failure = error

    def close(self, wait_s: float) -> None:
        """Wait this long for what is in flight, unless some failed; then drop it."""
        deadline = runtime.monotonic() + wait_s
        while self.lets_wait and runtime.monotonic() < deadline:
            self._poll(_POLL_S)
        self._producer.purge()
        self._poll(0)
        # nothing leads back here any more: the producer's threads end with this object
        self._callback = None
        self._held.clear()
        self._producer.close()

    @property
    def lets_wait(self) -> bool:
        """Return whether something is in flight that may well arrive."""
        going = self._failure is None and not self._trouble.is_on
        return going and len(self._producer) > 0

    def wait(self, wait_s: float) -> None:
        """Serve delivery reports, at most so long."""
        self._poll(wait_s)
