"""The Kafka sink: each op becomes records of its topic, in order."""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import structlog

from walstream.errors import HistoryError, RecordRefused, Restart, WalstreamError
from walstream.formats import encoder_of
from walstream.formats.context import Context
from walstream.formats.whole import Encode, whole_rows
from walstream.kafka.asking import Asking
from walstream.kafka.outbox import Headers, Outbox
from walstream.kafka.producer import fits_queue, producer_properties
from walstream.kafka.topics import Topic, Topics
from walstream.key_form import KeyRenderer
from walstream.ledger import Transaction
from walstream.lsn import show
from walstream.meter import SinkMeter, TableMeter
from walstream.metrics import SINK, TABLE
from walstream.op import EPOCH_S, Kind, ReplicationOp, Table, halves
from walstream.partitioner import PARTITIONERS
from walstream.routing import Route, Router

_REFRESH_S: Final = 60.0
_RECORD_OVERHEAD: Final = 200  # of a batch and a record around key and value, at most
_CLOSE_WAIT_S: Final = 3.0
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
    context: Context
    strict: bool = False  # an old row that is not whole is an error
    meter: SinkMeter = field(default_factory=SinkMeter)


@dataclass(slots=True, eq=False)
class _Target:
    """What is the same for all ops of one table: routed and rendered once."""

    route: Route
    topic: Topic | None  # None: not known yet
    key: KeyRenderer
    encode: Encode
    truncates: bool  # has the format a form for a Truncate?
    meter: TableMeter


class KafkaSink:
    """One sink of one source: an outbox, and the topics that it writes to."""

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
        self._make_encoder = encoder_of(rules.format)
        self._outbox: Outbox | None = None
        self._limits = (0, 0)  # of the topics that the outbox was built for
        self._targets: dict[Table, _Target | None] = {}
        self._met: set[str] = set()  # topics that fit the outbox
        self._headers: Headers = [("walstream-source", rules.source_header)]
        self._now_ms = 0
        self._refresh: Future[None] | None = None
        self._next_refresh = time.monotonic() + _REFRESH_S
        self._asking = Asking(topics.ask)
        self.dropped: dict[str, int] = {}  # ops without a topic or a form, by table

    def ready(self) -> bool:
        """Serve delivery reports, send what is held; tell whether there is room.

        Raises what stops this producer for good: nothing is sent after that.
        """
        if self._outbox is None:
            if not self._topics.have(self._expected):
                return False
            self._outbox = self._open()
        self._now_ms = int(time.time() * 1000)
        self._look_at_topics(self._outbox)
        return self._outbox.serve()

    def _open(self) -> Outbox:
        self._limits = self._topics.limits
        properties = producer_properties(self._properties, *self._limits)
        return Outbox(self._rules.name, properties)

    @property
    def in_flight(self) -> int:
        """Records, and the producer's own requests, under way."""
        return self._outbox.in_flight if self._outbox is not None else 0

    @property
    def records_delivered(self) -> int:
        """Records that Kafka has taken, since the stream began; from any thread."""
        return self._outbox.records_delivered if self._outbox is not None else 0

    @property
    def name(self) -> str:
        return self._rules.name

    @property
    def waiting(self) -> bool:
        """Tell whether it waits for Kafka."""
        return self._outbox is None or self._outbox.unreachable

    @property
    def topics(self) -> dict[str, Topic]:
        """Its topics as they were found, by name."""
        return dict(self._topics.known)

    def close(self) -> None:
        """Let what is in flight arrive, for a while; then give it up.

        Else a broker might take it after what the next producer sends of the same.
        """
        if self._outbox is not None:
            self._outbox.close(_CLOSE_WAIT_S)
            self._outbox = None
        self._topics.close()
        for table, count in self.dropped.items():
            _log.info(
                "ops were dropped",
                **{TABLE: table, SINK: self._rules.name},
                count=count,
            )

    def knows(self, table: Table) -> bool:
        """Tell whether a table's topic is known; look for it, without waiting, if not.

        Raises what makes that topic unusable.
        """
        topic = self._router.topic(table.schema, table.name)
        if topic is None or topic in self._met:
            return True
        if not self._topics.have([topic]):
            return False
        self._check_limits()
        self._met.add(topic)
        return True

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        """Hand over one op: counted in the transaction now, delivered later.

        The op is taken in any case; False: no other before `ready`.
        """
        outbox = self._outbox
        if outbox is None:
            raise WalstreamError("the sink was not ready: a defect")
        try:
            target = self._targets[op.table]
        except KeyError:
            target = self._aim(op.table)
        if target is None:
            self._drop(op.table, "table has no topic: its ops are")
        elif target.topic is None:
            transaction.undelivered += 1
            outbox.hold(partial(self._send_later, target, op, transaction))
        else:
            target.meter.ops += 1
            if op.kind is Kind.TRUNCATE:
                self._put_truncate(outbox, target, op, transaction)
            elif op.key_changed and self._rules.split_key_updates:
                target.meter.ops += 1  # of two numbers
                for half in halves(op):
                    self._put_row(outbox, target, half, transaction)
            else:
                self._put_row(outbox, target, op, transaction)
        return outbox.has_room

    def _aim(self, table: Table) -> _Target | None:
        if len(self._targets) >= _MAX_TARGETS:
            self._targets.clear()
        route = self._router.route(table, self._rules.context.origin)
        target = None
        if route is not None:
            topic = self._topics.known.get(route.topic)
            encoder = self._make_encoder(table, self._rules.context)
            encode = (
                whole_rows(encoder.encode) if self._rules.strict else encoder.encode
            )
            target = _Target(
                route,
                topic,
                route.key.render,
                encode,
                truncates=encoder.truncates,
                meter=self._rules.meter.tables.of(table.full_name),
            )
        self._targets[table] = target
        return target

    def _drop(self, table: Table, what: str) -> None:
        count = self.dropped.get(table.full_name, 0)
        self.dropped[table.full_name] = count + 1
        if not count:
            _log.warning(
                f"{what} dropped and counted",
                **{TABLE: table.full_name, SINK: self._rules.name},
            )

    def _send_later(
        self, target: _Target, op: ReplicationOp, transaction: Transaction
    ) -> bool:
        """Send an op whose topic was not known; False while it still is not."""
        name = target.route.topic
        if not self._topics.have([name]):
            return False
        self._check_limits()
        target.topic = self._topics.known[name]
        transaction.undelivered -= 1
        # its records queue behind this attempt; who hears of ops heard of this one
        KafkaSink.send(self, op, transaction)
        return True

    def _put_truncate(
        self,
        outbox: Outbox,
        target: _Target,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        topic = target.topic
        if topic is None:
            return
        # a backfill's is no change of the source's: a table's rows come anew
        rule = "send" if op.snapshot else self._rules.on_truncate
        if rule == "skip":
            return
        if rule == "stop":
            raise HistoryError(
                f"table {op.table.full_name!r} was truncated at {show(op.lsn)}, and"
                " on_truncate is 'stop'",
                hint="set on_truncate to send or skip, then: walstream run",
            )
        if not target.truncates:
            self._drop(
                op.table, f"a TRUNCATE has no form in {self._rules.format}: it is"
            )
            return
        value = target.encode(replace(op, partitions=topic.partitions))
        for partition in range(topic.partitions):
            outbox.put(
                topic.name,
                value,
                target.route.key.table_key,
                partition,
                self._timestamp_ms(op, topic),
                transaction,
                self._first_headers(topic, partition),
            )

    def _put_row(
        self,
        outbox: Outbox,
        target: _Target,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        topic = target.topic
        if topic is None:
            return
        key = target.key(op)
        value = target.encode(op)
        size = len(value) + len(key) + _RECORD_OVERHEAD
        if size > topic.limit:
            self._refuse(topic, size, op)
        partitions = topic.partitions
        partition = self._partition(key, partitions) if partitions > 1 else 0
        outbox.put(
            topic.name,
            value,
            key,
            partition,
            self._timestamp_ms(op, topic),
            transaction,
            self._first_headers(topic, partition) if topic.unwritten else None,
        )

    def _timestamp_ms(self, op: ReplicationOp, topic: Topic) -> int:
        """Give the commit time, held where Kafka neither deletes nor refuses it."""
        if op.commit_time != topic.stamped_commit_time:
            timestamp = min(op.commit_time // 1000 + EPOCH_S * 1000, self._now_ms)
            if topic.retention_ms > 0:
                timestamp = max(timestamp, self._now_ms - topic.retention_ms // 2)
            topic.stamped_commit_time = op.commit_time
            topic.stamp_ms = timestamp
        return topic.stamp_ms

    def _first_headers(self, topic: Topic, partition: int) -> Headers | None:
        """Say once for each partition where this producer's records come from."""
        if partition not in topic.unwritten:
            return None
        topic.unwritten.discard(partition)
        return self._headers

    def _refuse(self, topic: Topic, size: int, op: ReplicationOp) -> None:
        """Stop at a record that the topic does not take."""
        raise RecordRefused(
            f"a record of table {op.table.full_name!r} at ({show(op.lsn)},"
            f" {op.seq_id}) has {size} bytes, topic {topic.name!r} takes {topic.limit}",
            hint=f"raise max.message.bytes of {topic.name!r}, then: walstream run",
        )

    def _look_at_topics(self, outbox: Outbox) -> None:
        """See once a minute whether the topics are still what they were."""
        if self._asking.back(away=outbox.unreachable):
            outbox.answers()
        if self._refresh is None:
            if time.monotonic() >= self._next_refresh:
                self._next_refresh = time.monotonic() + _REFRESH_S
                self._refresh = self._topics.refresh()
        elif self._refresh.done():
            refresh, self._refresh = self._refresh, None
            error = refresh.exception()
            if isinstance(error, WalstreamError) and not error.retryable:
                outbox.fail(error)
            self._check_limits()

    def _check_limits(self) -> None:
        """Begin again when batches are too large, or the queue too small, for a topic.

        A wider limit needs neither: the size check reads it from the topic.
        """
        smallest, largest = self._topics.limits
        if smallest < self._limits[0] or not fits_queue(
            self._properties, largest, self._limits[1]
        ):
            raise Restart("max.message.bytes of a topic changed")
