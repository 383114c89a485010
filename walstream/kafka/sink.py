"""The Kafka sink: each op becomes records of its topic, in order."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final

from walstream.config.librdkafka import ClientProperties
from walstream.errors import WalstreamError
from walstream.kafka.freeze_clock import TurnClock, stood_still
from walstream.kafka.ordered_producer import Headers, OrderedProducer
from walstream.kafka.producer_fit import ProducerFit
from walstream.kafka.producer_pool import ProducerPool
from walstream.kafka.target import Target
from walstream.kafka.topic import Topic
from walstream.kafka.topic_watch import TopicWatch
from walstream.kafka.topics import Topics
from walstream.op import Kind, LargeOp, ReplicationOp, Table, halves
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.outage import Outage
from walstream.records.encoding import (
    MAX_TABLES,
    EncodingPlan,
    SinkRules,
    TableEncoding,
)
from walstream.records.oversize import RECORD_OVERHEAD, TooLarge
from walstream.records.partitioner import PARTITIONERS
from walstream.records.router import Router
from walstream.telemetry.tally import Tally

_CLOSE_WAIT_S: Final = 3.0
ALONE: Final = 8 << 20  # bytes of a record: more are not copied twice
_TRUNCATE: Final = Kind.TRUNCATE  # an enum's members are slow to look up
_DELETE: Final = Kind.DELETE


class KafkaSink:
    """One sink of one source: its producers, and the topics that it writes to."""

    takes_large: ClassVar = True  # ops with stand-ins, too

    def __init__(
        self,
        rules: SinkRules,
        router: Router,
        topics: Topics,
        *,
        producer: ClientProperties,
        expected: Iterable[str] = (),
    ) -> None:
        """Look at `expected` topics, or create them, before anything is sent."""
        self._rules = rules
        self._router = router
        self._topics = topics
        self._expected = [*expected, *([rules.parking] if rules.parking else ())]
        self._partition = PARTITIONERS[rules.partitioner]
        self._aims = EncodingPlan(rules, router)
        self._tombstones = rules.tombstones
        self._outboxes: ProducerPool | None = None
        self._fit = ProducerFit(rules.name, rules.meter, producer)
        self._targets: dict[Table, Target | None] = {}
        self._given_aims: dict[Table, TableEncoding] = {}
        self._met: set[str] = set()  # topics that fit the outbox
        # where this producer's records come from: once for each partition
        self._headers: Headers = [("walstream-source", rules.source_header)]
        self._clock = TurnClock()
        self._watch = TopicWatch(topics)

    def ready(self) -> bool:
        """Serve delivery reports, send what is held; tell whether there is room.

        Raises what stops this producer for good: nothing is sent after that.
        """
        if self._outboxes is None:
            if not self._topics.have(self._expected):
                return False
            self._targets.clear()
            self._outboxes = self._fit.open(self._expected, self._topics.limits)
        still_ms = self._clock.turn()
        if still_ms > self._rules.frozen_after_ms and self._outboxes.in_flight:
            self._outboxes.close()  # before a poll lets librdkafka send more of it
            raise stood_still(still_ms)
        self._look_at_topics(self._outboxes)
        return self._outboxes.serve()

    @property
    def in_flight(self) -> int:
        """Count of records and of the producer's own requests in flight."""
        return outboxes.in_flight if (outboxes := self._outboxes) is not None else 0

    @property
    def name(self) -> str:
        return self._rules.name

    @property
    def waiting(self) -> bool:
        """Return whether it waits for Kafka."""
        return (outboxes := self._outboxes) is None or outboxes.unreachable

    @property
    def outage(self) -> Outage | None:
        """Reason why Kafka does not answer, as far as known."""
        return (self._outboxes or self._topics).outage

    @property
    def handler_waits(self) -> bool:
        """Return False: handlers are wrapped around this sink."""
        return False

    @property
    def tally(self) -> Tally:
        """Counts of parked and dropped ops, by table."""
        return self._aims.tally

    @property
    def topics(self) -> dict[str, Topic]:
        """Its topics as they were found, by name."""
        return dict(self._topics.known)

    def close(self) -> None:
        """Wait a while for what is in flight; then drop it.

        Else a broker might take it after what the next producer sends of the same.
        """
        if (outboxes := self._outboxes) is not None:
            outboxes.wait(_CLOSE_WAIT_S)
            self._outboxes = None  # must end nothing: who reports would find it freed
            outboxes.close()  # used after that, so ended here (docs/decisions/0050)
        self._topics.close()
        self._aims.tell()

    def knows(self, table: Table) -> bool:
        """Return whether a table's topic is known; if not, look for it without waiting.

        Raises what makes that topic unusable.
        """
        topic = self._router.topic(table.schema, table.name)
        if topic is None or topic in self._met:
            return True
        if not self._topics.have([topic]):
            return False
        self._meet(topic)
        self._met.add(topic)
        return True

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        """Hand over one op: counted in the transaction now, delivered later.

        The op is taken in any case; False: no other before `ready`.
        """
        try:
            target = self._targets[op.table]
        except KeyError:
            target = self._aim(op.table)
        if target is None:
            self._aims.drop(op.table)
            return True
        topic = target.topic
        if topic is None:
            # who hears of ops heard of this one
            again = partial(KafkaSink.send, self, op, transaction)
            self._hold(target, transaction, again)
        else:
            target.meter.ops += 1
            if op.kind is _TRUNCATE:
                self._put_truncate(target, topic, op, transaction)
            elif op.key_changed and self._rules.split_key_updates:
                target.meter.ops += 1  # of two numbers
                self._put_halves(target, topic, op, transaction)
            else:
                self._put_row(target, topic, op, transaction)
        return target.outbox.has_room

    def put(
        self,
        key: bytes,
        value: bytes,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        """Send a record that a handler made of an op, to the op's topic."""
        target = self._target(op.table)
        if target is None:
            self._aims.drop(op.table)
        elif target.topic is None:
            again = partial(self.put, key, value, op, transaction)
            self._hold(target, transaction, again)
        else:
            topic, outbox = target.topic, target.outbox
            self._put(outbox, topic, key, value, op, transaction)

    def aim_at(self, table: Table, aim: TableEncoding) -> None:
        """Let ops of a table that no database has go where `aim` says; before any."""
        self._given_aims[table] = aim

    def rows_of(self, op: ReplicationOp) -> int:
        """Return how many records it becomes that are of a row; 0: it is dropped."""
        target = self._target(op.table)
        if target is None or op.kind is _TRUNCATE:
            return 0
        return 2 if op.key_changed and self._rules.split_key_updates else 1

    def _target(self, table: Table) -> Target | None:
        try:
            return self._targets[table]
        except KeyError:
            return self._aim(table)

    def _aim(self, table: Table) -> Target | None:
        if len(self._targets) >= MAX_TABLES:
            self._targets.clear()
        target = None
        if (aim := self._given_aims.get(table) or self._aims.of(table)) is not None:
            topic = self._topics.known.get(aim.route.topic)
            outbox = self._outbox_of(aim.route.topic)
            target = Target(aim, topic, outbox)
        self._targets[table] = target
        return target

    def _outbox_of(self, topic: str) -> OrderedProducer:
        if self._outboxes is None:
            raise WalstreamError("the sink was not ready: a defect")
        return self._outboxes.of(topic)

    def _hold(
        self, target: Target, transaction: Transaction, send: Callable[[], object]
    ) -> None:
        """Send what has a topic that is not known, once it is."""
        transaction.undelivered += 1

        def attempt() -> bool:
            name = target.aim.route.topic
            if not self._topics.have([name]):
                return False
            self._meet(name)
            target.topic = self._topics.known[name]
            send()  # its records queue behind this attempt
            transaction.undelivered -= 1  # only now: one that is refused stays counted
            return True

        target.outbox.hold(attempt)

    def _put_truncate(
        self,
        target: Target,
        topic: Topic,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        if not self._aims.sends_truncate(op, target.aim):
            return
        value = target.encode(replace(op, partitions=topic.partitions))
        key = target.aim.route.key.table_key
        for partition in range(topic.partitions):
            self._put(target.outbox, topic, key, value, op, transaction, partition)

    def _put_halves(
        self,
        target: Target,
        topic: Topic,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        for half in halves(op):
            self._put_row(target, topic, half, transaction)

    def _put_row(
        self,
        target: Target,
        topic: Topic,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        if type(op) is LargeOp:
            key = self._put_large(target, topic, op, transaction)
        else:
            key = target.key(op)
            value = target.encode(op)
            self._put(target.outbox, topic, key, value, op, transaction)
        if self._tombstones and op.kind is _DELETE:
            self._put(target.outbox, topic, key, None, op, transaction)

    def _put_large(
        self, target: Target, topic: Topic, op: LargeOp, transaction: Transaction
    ) -> bytes:
        """Do the same, but write no more than what is sent; return the key."""
        key, record = target.large(op)
        size = record.size() + len(key) + RECORD_OVERHEAD
        if size > topic.limit:
            self._park(topic.too_large(op, key, size), transaction)
        else:
            value = record.value()
            self._put(target.outbox, topic, key, value, op, transaction)
        return key

    def _put(  # noqa: PLR0913, PLR0917 - a record without an object for each
        self,
        outbox: OrderedProducer,
        topic: Topic,
        key: bytes,
        value: bytes | None,
        op: ReplicationOp,
        transaction: Transaction,
        partition: int = -1,
    ) -> None:
        """Put a record in its key's partition, or this one; or park it.

        Parked is what its topic does not take.
        """
        size = len(value or b"") + len(key) + RECORD_OVERHEAD
        if size > topic.limit:
            self._park(topic.too_large(op, key, size), transaction)
            return
        if partition < 0:
            partitions = topic.partitions
            partition = self._partition(key, partitions) if partitions > 1 else 0
        name, headers = topic.name, topic.headers(partition, self._headers)
        stamp = topic.timestamp_ms(op.commit_time, self._clock.now_ms)
        if value is not None and len(value) > ALONE:
            outbox.put_alone(name, value, key, partition, stamp, transaction, headers)
        else:
            outbox.put(name, value, key, partition, stamp, transaction, headers)

    def _park(self, large: TooLarge, transaction: Transaction) -> None:
        """Leave word of a record that its topic does not take, or stop at it."""
        parking = self._topics.known.get(self._rules.parking)
        if parking is None or large.size_parked > parking.limit:
            raise large.refusal()
        self.tally.parked[large.op.table.full_name] += 1
        large.tell(self._rules.name, parking.name)
        outbox, document = self._outbox_of(parking.name), large.document()
        self._put(outbox, parking, large.key, document, large.op, transaction)

    def _look_at_topics(self, kafka: ProducerPool) -> None:
        """See whether the topics are still what they were."""
        gone = self._watch.look(kafka)
        if gone is None:
            return
        if gone:
            self._met -= gone
            self._targets.clear()
        self._fit.check(self._topics.limits)

    def _meet(self, topic: str) -> None:
        self._watch.meet(topic)
        self._fit.check(self._topics.limits)
