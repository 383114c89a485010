"""The Kafka sink: ops to records, produced in order, each delivery accounted for.

After the first failed delivery nothing more is sent: the producer is purged and closed,
and the stream starts again from the position, so that no record is ever overtaken by
one that came after it.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import structlog
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from walstream.errors import (
    HistoryError,
    RecordRefused,
    Restart,
    Transient,
    WalstreamError,
)
from walstream.formats import ENCODERS, Encoder
from walstream.kafka.failure import failure
from walstream.kafka.producer import producer_properties
from walstream.kafka.topics import Topic, Topics
from walstream.ledger import Transaction
from walstream.lsn import show
from walstream.metrics import SINK, TABLE
from walstream.op import Kind, ReplicationOp, Table, halves
from walstream.partitioner import PARTITIONERS
from walstream.routing import Route, Router

_REFRESH_S: Final = 60.0
_RECORD_OVERHEAD: Final = 200  # of a batch and a record around key and value, at most
_EPOCH_MS: Final = 946_684_800_000  # 2000-01-01, from where PostgreSQL counts
_MAX_TARGETS: Final = 65_536
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class SinkRules:
    """How a sink turns ops into records."""

    name: str
    format: str
    partitioner: str
    on_truncate: str  # send | skip | stop
    split_key_updates: bool
    source_header: bytes  # system_identifier/database/epoch


@dataclass(slots=True, eq=False)
class _Target:
    """What is the same for all ops of one table: routed and rendered once."""

    route: Route
    encoder: Encoder
    topic: Topic | None  # None: not known yet


class KafkaSink:
    """One sink of one source: a producer, and the topics that it writes to."""

    def __init__(
        self,
        rules: SinkRules,
        router: Router,
        topics: Topics,
        *,
        producer: Mapping[str, Any],
        expected: Iterable[str] = (),
    ) -> None:
        """Look at `expected` topics, or create them, before anything is sent."""
        self._rules = rules
        self._router = router
        self._topics = topics
        self._expected = list(expected)
        self._properties = producer
        self._partition = PARTITIONERS[rules.partitioner]
        self._producer: Producer | None = None
        self._targets: dict[Table, _Target | None] = {}
        self._held: deque[Callable[[], bool]] = deque()  # sends that found no room
        self._failure: WalstreamError | None = None
        self._callback: tuple[Transaction | None, Any] = (None, None)
        self._headers: list[tuple[str, str | bytes | None]] = [
            ("walstream-source", rules.source_header)
        ]
        self._now_ms = 0
        self._refresh: Future[None] | None = None
        self._next_refresh = 0.0
        self._unreachable = False
        self.delivered = 0
        self.dropped: dict[str, int] = {}  # ops without a topic, by table

    def ready(self) -> bool:
        """Serve delivery reports, send what is held; tell whether there is room.

        Raises what stops this producer for good: nothing is sent after that.
        """
        if self._producer is None:
            if not self._topics.have(self._expected):
                return False
            self._producer = self._build()
        self._now_ms = int(time.time() * 1000)
        self._producer.poll(0)
        self._look_at_topics()
        if self._failure is not None:
            raise self._failure
        while self._held:
            if not self._held[0]():
                return False
            self._held.popleft()
        return True

    @property
    def in_flight(self) -> int:
        """Records (and the producer's own requests) under way."""
        return len(self._producer) if self._producer is not None else 0

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        """Hand over one op: counted in the transaction now, delivered later.

        The op is taken in any case; False: no other before `ready`.
        """
        try:
            target = self._targets[op.table]
        except KeyError:
            target = self._aim(op.table)
        if target is None:
            self._drop(op.table)
        elif target.topic is None:
            transaction.undelivered += 1
            self._held.append(partial(self._send_later, target, op, transaction))
        elif op.kind is Kind.TRUNCATE:
            self._send_truncate(target, op, transaction)
        elif op.key_changed and self._rules.split_key_updates:
            for half in halves(op):
                self._send_row(target, target.topic, half, transaction)
        else:
            self._send_row(target, target.topic, op, transaction)
        return not self._held and self._failure is None

    def close(self) -> None:
        """Give up what is in flight; its deliveries are reported no more."""
        if self._producer is not None:
            self._producer.purge()
            self._producer.poll(0)
            self._producer = None
        self._topics.close()

    def _build(self) -> Producer:
        for topic in self._topics.known.values():
            topic.unwritten = set(range(topic.partitions))
        self._limits = self._topics.limits
        return Producer(
            {
                **producer_properties(self._properties, *self._limits),
                "error_cb": self._on_error,
            },
            logger=logging.getLogger("librdkafka"),
        )

    def _aim(self, table: Table) -> _Target | None:
        if len(self._targets) >= _MAX_TARGETS:
            self._targets.clear()
        route = self._router.route(table)
        target = None
        if route is not None:
            topic = self._topics.known.get(route.topic)
            target = _Target(route, ENCODERS[self._rules.format](table), topic)
        self._targets[table] = target
        return target

    def _drop(self, table: Table) -> None:
        count = self.dropped.get(table.full_name, 0)
        self.dropped[table.full_name] = count + 1
        if not count:
            _log.warning(
                "table has no topic: its ops are dropped and counted",
                **{TABLE: table.full_name, SINK: self._rules.name},
            )

    def _send_later(
        self, target: _Target, op: ReplicationOp, transaction: Transaction
    ) -> bool:
        """Send an op whose topic was not known; False while it still is not."""
        name = target.route.topic
        if not self._topics.have([name]):
            return False
        if self._topics.limits[0] < self._limits[0]:
            raise Restart(f"topic {name!r} takes less than the producer's batches")
        target.topic = self._topics.known[name]
        transaction.undelivered -= 1
        self.send(op, transaction)  # its records queue behind this entry
        return True

    def _send_truncate(
        self, target: _Target, op: ReplicationOp, transaction: Transaction
    ) -> None:
        topic = target.topic
        if self._rules.on_truncate == "skip" or topic is None:
            return
        if self._rules.on_truncate == "stop":
            raise HistoryError(
                f"table {op.table.full_name!r} was truncated at {show(op.lsn)}, and"
                " on_truncate is 'stop'",
                hint="set on_truncate to send or skip, then: walstream run",
            )
        value = target.encoder.encode(replace(op, partitions=topic.partitions))
        for partition in range(topic.partitions):
            self._produce(
                topic, partition, target.route.table_key, value, op, transaction
            )

    def _send_row(
        self,
        target: _Target,
        topic: Topic,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        key = target.route.key(op.new or op.old or ())
        value = target.encoder.encode(op)
        partitions = topic.partitions
        partition = self._partition(key, partitions) if partitions > 1 else 0
        self._produce(topic, partition, key, value, op, transaction)

    def _produce(  # noqa: PLR0913, PLR0917 - a record's parts, without an object for each row
        self,
        topic: Topic,
        partition: int,
        key: bytes,
        value: bytes,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        if len(value) + len(key) + _RECORD_OVERHEAD > topic.limit:
            self._refuse(topic, len(value) + len(key) + _RECORD_OVERHEAD, op)
        timestamp = op.commit_time // 1000 + _EPOCH_MS
        if timestamp > self._now_ms:
            timestamp = self._now_ms
        elif topic.retention_ms > 0:
            timestamp = max(timestamp, self._now_ms - topic.retention_ms // 2)
        if self._callback[0] is not transaction:
            self._callback = (transaction, partial(self._report, transaction))
        headers = None
        if topic.unwritten and partition in topic.unwritten:
            topic.unwritten.discard(partition)
            headers = self._headers
        callback = self._callback[1]
        transaction.undelivered += 1
        if self._held or not self._take(
            topic.name, value, key, partition, callback, timestamp, headers
        ):
            self._held.append(
                partial(
                    self._take,
                    topic.name,
                    value,
                    key,
                    partition,
                    callback,
                    timestamp,
                    headers,
                )
            )

    def _take(  # noqa: PLR0913, PLR0917 - as produce takes them
        self,
        topic: str,
        value: bytes,
        key: bytes,
        partition: int,
        callback: Callable[..., None],
        timestamp: int,
        headers: list[tuple[str, str | bytes | None]] | None,
    ) -> bool:
        """Give one record to the producer; False when its queue is full."""
        producer = self._producer
        if producer is None:
            return False
        try:
            if headers is None:
                producer.produce(
                    topic, value, key, partition, callback, timestamp=timestamp
                )
            else:
                producer.produce(
                    topic,
                    value,
                    key,
                    partition,
                    callback,
                    timestamp=timestamp,
                    headers=headers,
                )
        except BufferError:
            return False
        except KafkaException as error:
            self._fail(failure(error.args[0], f"producing to {topic!r}"))
        return True

    def _report(
        self, transaction: Transaction, error: KafkaError | None, message: Message
    ) -> None:
        """Count one delivery. Called by the producer: must not raise."""
        if error is None:
            transaction.undelivered -= 1
            self.delivered += 1
            if self._unreachable:
                self._unreachable = False
                _log.info("Kafka takes records again", **{SINK: self._rules.name})
        else:
            where = f"{message.topic()!r} partition {message.partition()}"
            self._fail(failure(error, f"delivering to {where}"))

    def _fail(self, error: WalstreamError) -> None:
        """Remember what stops this producer: a lasting cause before a passing one."""
        if self._failure is None or (self._failure.retryable and not error.retryable):
            self._failure = error

    def _on_error(self, error: KafkaError) -> None:
        """Hear of trouble that belongs to no record."""
        if error.fatal():
            self._fail(Transient(f"the producer gave up: {error.str()}"))
        elif not self._unreachable:
            self._unreachable = True
            _log.warning(
                "Kafka is in trouble: records wait",
                error=error.str(),
                **{SINK: self._rules.name},
            )

    def _refuse(self, topic: Topic, size: int, op: ReplicationOp) -> None:
        """Stop at a record that the topic does not take."""
        raise RecordRefused(
            f"a record of table {op.table.full_name!r} at ({show(op.lsn)},"
            f" {op.seq_id}) has {size} bytes, topic {topic.name!r} takes {topic.limit}",
            hint=f"raise max.message.bytes of {topic.name!r}, then: walstream run",
        )

    def _look_at_topics(self) -> None:
        """See once a minute whether the topics are still what they were."""
        if self._refresh is not None:
            if not self._refresh.done():
                return
            try:
                self._refresh.result()
            except WalstreamError as error:
                if not error.retryable:
                    self._fail(error)
            self._refresh = None
            if self._topics.limits_changed:
                self._topics.limits_changed = False
                raise Restart("max.message.bytes of a topic changed")
        elif time.monotonic() >= self._next_refresh:
            if self._next_refresh:
                self._refresh = self._topics.refresh()
            self._next_refresh = time.monotonic() + _REFRESH_S
