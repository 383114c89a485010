"""The basic consumer: each op at least once.

An offset is stored after its op was handled, so that a crash repeats the last ones.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from confluent_kafka import Message

from consumer.decoder import Decoder, record_of
from consumer.error_text import handler_failed
from consumer.errors import SchemasAway, SchemasRefused
from consumer.group.assigned_partition import AssignedPartition, Pause
from consumer.group.batch_limit import BatchLimit
from consumer.group.event_loop import EventLoop
from consumer.group.linger import Linger
from consumer.group.member import GroupMember
from consumer.group.offset_gaps import Gaps
from consumer.group.settings import ClientProperties, begin_of
from consumer.group.topic_start import TopicStart
from consumer.handler import (
    BasicApplication,
    BasicBatchApplication,
    BasicBatchHandler,
    BasicHandler,
    Fatal,
    Retry,
    basic_batch_handler,
    basic_handler,
    check_batch,
    generated,
)
from consumer.metrics import Measure, Metrics, unmeasured
from consumer.op import ConsumerRecord, Op
from consumer.poison import OnPoison, checked, meet
from consumer.registry import RegistryProperties, registry_of
from consumer.router import BasicRouter, BasicRoutes, routes_of
from consumer.state.topic_guard import TopicGuard
from walstream.errors import Transient, WalstreamError
from walstream.formats.debezium.options import UNAVAILABLE
from walstream.op import Kind
from walstream.pipeline.backoff import Backoff
from walstream.telemetry import runtime

_WANTED: Final = 1000  # messages
_TELL_INTERVAL_S: Final = 1.0
_GAPS_REST_S: Final = 1.0
_BEGINS_S: Final = 0.2  # after which it may be known where
_log = logging.getLogger(__name__)


class BasicConsumer(GroupMember, BasicRoutes):
    """Hands each op of the topics to the application, at least once.

        with BasicConsumer(app, group="g", topics=["orders"],
                           kafka={"bootstrap.servers": "localhost:9092"}) as consumer:
            consumer.run()

    Partitions are handled concurrently, by a thread each; in one, in order. A TRUNCATE
    comes once for each partition of its topic, since nothing here knows of the others:
    a row of another partition may be handled before or after.

    An application with `handle_batch(ops)` gets up to `batch` ops of a partition at
    once. Handlers may be coroutine functions: one event loop runs those of all
    partitions, and a partition waits for its own.

    Without an application it has a router: `@consumer.on("shop.orders", Kind.INSERT)`.
    """

    def __init__(  # noqa: PLR0913 - keywords
        self,
        app: BasicApplication | BasicBatchApplication | BasicHandler | None = None,
        *,
        group: str,
        topics: Sequence[str] | str,
        kafka: ClientProperties,
        batch: int = 1000,
        linger: float = 0.0,
        unavailable: str = UNAVAILABLE,
        registry: RegistryProperties | None = None,
        on_poison: OnPoison = "stop",
        metrics: Metrics = unmeasured,
        stop_timeout: float = 30.0,
    ) -> None:
        """`kafka` takes librdkafka's properties; times are in seconds.

        `linger` is how long `handle_batch` waits for `batch` ops of a partition.
        `unavailable` is what stands in Debezium's records for an unchanged TOAST value.
        `registry` has the schemas of records: {"url": "http://HOST:8081"}, and
        other properties of Confluent's SchemaRegistryClient.
        """
        check_batch(app, batch, linger)
        super().__init__(
            group=group, topics=topics, kafka=kafka, stop_timeout=stop_timeout
        )
        self._loop = EventLoop()
        self._registry = registry_of(registry)
        self._decoder = Decoder(unavailable, self._registry)
        app = BasicRouter() if app is None else app
        self.routes = routes_of(app)
        self.routes.metrics = metrics
        self._options = BasicOptions(
            self._op_of,
            basic_handler(app),
            checked(on_poison, coroutines=True),
            metrics,
            TopicGuard(self._settings, group),
            basic_batch_handler(app),
            batch,
            linger,
            self._result_of,
        )

    def _work(self, lane: AssignedPartition) -> "BasicWork":
        return BasicWork(lane, self._options)

    def _topic_start(self) -> TopicStart:
        return TopicStart(begin_of(self._settings))

    def _op_of(self, record: ConsumerRecord) -> Op | None:
        return self._decoder.op_of(record)

    def _prepare(self) -> None:
        self.routes.require()

    def _release(self) -> None:
        self._loop.close()
        if self._registry is not None:
            self._registry.close()

    def _result_of(self, returned: object) -> object:
        reason = generated(returned)
        if reason is not None:
            raise Fatal(reason)
        return self._loop.result_of(returned)


@dataclass(frozen=True, slots=True)
class BasicOptions:
    decode: Callable[[ConsumerRecord], Op | None]
    handler: Callable[[Op], object]
    on_poison: OnPoison
    metrics: Metrics
    guard: TopicGuard
    batch_handler: BasicBatchHandler | None
    batch: int  # ops
    linger_s: float
    result_of: Callable[[object], object]  # of a coroutine, or of what is none


class BasicWork:
    """One partition of a basic consumer."""

    holds = False

    def __init__(self, lane: AssignedPartition, options: BasicOptions) -> None:
        self.wanted = _WANTED if options.batch_handler is None else options.batch
        if options.linger_s:
            lane.linger = Linger(options.linger_s, self.wanted)
        self._lane = lane
        self._options = options
        self._limit = BatchLimit(options.batch)
        self._backoff = Backoff(longest_s=30.0)
        self._retried = -1  # the offset of the last op that was asked for again
        self._gaps = Gaps()
        self._handled = self._skipped = 0  # since they were told
        self._next_tell = 0.0

    def begin(self) -> None:
        """Seek where the group begins, once that is known.

        The client began by itself, perhaps before that was stored.
        """
        if self._lane.begins is None:
            raise Pause(_BEGINS_S)
        self._lane.seek(self._lane.begins)

    def rest(self) -> float | None:
        self._ask_for_gaps()
        return _GAPS_REST_S if self._gaps.pending else None

    def end(self) -> None:
        """Nothing is held."""

    def handle(self, messages: list[Message]) -> int:
        lane = self._lane
        self._gaps.see(messages, lane.reached)
        self._ask_for_gaps()
        batch_handler = self._options.batch_handler
        try:
            if batch_handler is not None:
                return self._handle_batches(batch_handler, messages)
            return self._handle(lane, messages)
        finally:
            self._tell()

    def _handle(self, lane: AssignedPartition, messages: list[Message]) -> int:
        handler, place = self._options.handler, lane.place
        result_of = self._options.result_of
        clock = runtime.current().monotonic
        for done, message in enumerate(messages):
            record = record_of(message, place)
            op = self._op(record, done)
            if op is None:
                self._skipped += 1
            else:
                try:
                    result = handler(op)
                    if result is not None:
                        result_of(result)
                except BaseException as error:  # noqa: BLE001 - anything of theirs
                    self._meet(op, error, done)
                self._handled += 1
            lane.handled = record.offset + 1
            if clock() >= self._next_tell:
                self._tell()
            if lane.stopping:
                return done + 1
        return len(messages)

    def _handle_batches(
        self, handler: BasicBatchHandler, messages: list[Message]
    ) -> int:
        lane, result_of, done = self._lane, self._options.result_of, 0
        while done < len(messages):
            ops, taken = self._batch(messages, done)
            try:
                if ops:
                    result_of(handler(tuple(ops)))
            except BaseException as error:  # noqa: BLE001 - anything of theirs
                if ops[0].record.offset > (messages[done].offset() or 0):
                    lane.handled = ops[0].record.offset  # tombstones came before
                self._meet_batch(ops, error, done)
                continue
            if ops:
                self._limit.succeeded()
                self._backoff.reset()
            self._handled += len(ops)
            self._skipped += taken - len(ops)
            done += taken
            lane.handled = (messages[done - 1].offset() or 0) + 1
            if runtime.monotonic() >= self._next_tell:
                self._tell()
            if lane.stopping:
                break
        return done

    def _batch(self, messages: list[Message], start: int) -> tuple[list[Op], int]:
        """Return the next ops, and how many messages they come from.

        A Truncate is alone. A record that is not an op comes after all before it.
        """
        ops: list[Op] = []
        place, most = self._lane.place, self._limit.now
        for taken, message in enumerate(messages[start:]):
            record = record_of(message, place)
            try:
                op = self._options.decode(record)
            except WalstreamError:
                if taken:
                    return ops, taken
                self._op(record, start)
                return ops, 1
            if op is None:
                continue
            alone = op.kind is Kind.TRUNCATE
            if alone and ops:
                return ops, taken
            ops.append(op)
            if alone or len(ops) >= most:
                return ops, taken + 1
        return ops, len(messages) - start

    def _meet_batch(self, ops: list[Op], error: BaseException, done: int) -> None:
        """Go on with half of the ops, or with the same op a little later, or never."""
        several = self._limit.failed(len(ops))
        if isinstance(error, Retry):
            self._count(Measure.RETRIED, 1)
            raise Pause(self._backoff.next(), done)
        if not several or not isinstance(error, Exception):
            raise handler_failed(ops[0], error)

    def _ask_for_gaps(self) -> None:
        """Log which records Kafka deleted; the others of a gap are no loss."""
        missing = self._gaps.due()
        if missing is None:
            return
        place = self._lane.place
        try:
            low, _ = self._options.guard.bounds(place)
        except Transient as error:
            _log.warning(
                "%s: offset %s is missing, and it is not known why: %s",
                place,
                missing,
                error,
            )
            return
        if low > missing:
            _log.warning(
                "%s: Kafka deleted offsets %s to %s before they were read; continuing",
                place,
                missing,
                low - 1,
            )
            self._count(Measure.LOST, low - missing)

    def _op(self, record: ConsumerRecord, done: int) -> Op | None:
        """Decode, perhaps a little later; None for what is passed over."""
        options = self._options
        try:
            return options.decode(record)
        except SchemasAway as error:
            raise Pause(error.wait_s, done) from None
        except SchemasRefused:
            raise
        except WalstreamError as error:
            self._count(Measure.POISON, 1)
            meet(options.on_poison, record, error, options.result_of)
            return None

    def _meet(self, op: Op, error: BaseException, done: int) -> NoReturn:
        """Go on with the same op a little later, or never."""
        if not isinstance(error, Retry):
            raise handler_failed(op, error)
        self._count(Measure.RETRIED, 1)
        if self._retried != op.record.offset:
            self._retried = op.record.offset
            self._backoff.reset()
        raise Pause(self._backoff.next(), done)

    def _tell(self) -> None:
        """Report the counts: with a slow handler, a chunk may take hours."""
        self._next_tell = runtime.monotonic() + _TELL_INTERVAL_S
        self._count(Measure.HANDLED, self._handled)
        self._count(Measure.SKIPPED, self._skipped)
        self._handled = self._skipped = 0

    def _count(self, measure: Measure, value: int) -> None:
        if value:
            self._options.metrics(measure, value, *self._lane.place)
