"""The part of a Kafka sink below any format: producers, topics, finished records."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from walstream.config.librdkafka import ClientProperties
from walstream.errors import WalstreamError
from walstream.kafka.freeze_clock import TurnClock, stood_still
from walstream.kafka.handler_record import partition_of, told_time
from walstream.kafka.last_record import DeliveredRecords
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.producer_fit import ProducerFit
from walstream.kafka.producer_pool import ProducerPool
from walstream.kafka.topic import Topic
from walstream.kafka.topic_watch import TopicWatch
from walstream.kafka.topics import Topics
from walstream.kafka.transaction_topic import transaction_topic
from walstream.lsn import Lsn
from walstream.op import MessageOp, ReplicationOp
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.outage import Outage
from walstream.records.encoding import EncodingPlan, SinkRules
from walstream.records.message_records import MessageRecords, Write, stand_in
from walstream.records.message_router import MessageRouter
from walstream.records.named_topics import NamedTopics
from walstream.records.oversize import TooLarge
from walstream.records.partitioner import PARTITIONERS
from walstream.records.producer_record import ProducerRecord
from walstream.records.record_size import RECORD_OVERHEAD, Headers, size_of
from walstream.records.router import Router, spelling
from walstream.telemetry.tally import Tally

_CLOSE_WAIT_S: Final = 3.0
ALONE: Final = 8 << 20  # bytes of a record: more are not copied twice


class RecordSink:
    """Sink of records that are finished."""

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
        self._named = NamedTopics(router, rules.max_named_topics)
        self._awaited: set[str] = set()  # topics that are not known yet
        for topic in (rules.parking, *rules.reserved):
            self._named.reserve(topic)
        self._messages: MessageRecords | None = None
        if rules.messages is not None:
            routed = MessageRouter(
                rules.messages, spelling(rules.format), self._named.is_taken
            )
            self._messages = MessageRecords(
                rules.name, routed, self._aims.tally, self._write_message()
            )
        self._told = transaction_topic(rules, topics, self.put_aside)
        self._outboxes: ProducerPool | None = None
        self._fit = ProducerFit(rules.name, rules.meter, producer)
        # where records come from: of the first in each partition, and some others
        self._headers: Headers = [("walstream-source", rules.source_header)]
        self._delivered = DeliveredRecords(rules.name, rules.meter, topics.disown)
        self._clock = TurnClock()
        self._watch = TopicWatch(topics)

    def ready(self) -> bool:
        """Serve delivery reports, send what is held; tell whether there is room.

        Raises what stops this producer for good: nothing is sent after that.
        """
        if self._outboxes is None:
            if not self._topics.have(self._expected):
                return False
            self._forget(set())
            self._outboxes = self._fit.open(self._expected, self._topics.limits)
        still_ms = self._clock.turn()
        if still_ms > self._rules.frozen_after_ms and self._outboxes.in_flight:
            self._outboxes.close()  # before a poll lets librdkafka send more of it
            raise stood_still(still_ms)
        self._look_at_topics(self._outboxes)
        room = self._outboxes.serve()
        if room and self._told is not None:
            self._told.tell_resolved()
        return room

    def resolve(self, lsn: Lsn) -> None:
        """Note that each op of a transaction below `lsn` was delivered."""
        if self._told is not None:
            self._told.resolve(lsn)

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

    def proven(self, resume: Lsn) -> Lsn:
        """Return how far the position may go: see `DeliveredRecords`."""
        return self._delivered.proven(resume)

    def close(self) -> None:
        """Wait a while for what is in flight; then drop it.

        Else a broker might take it after what the next producer sends of the same. Of
        a process that was frozen it is dropped at once: another one may have sent what
        comes behind it.
        """
        if (outboxes := self._outboxes) is not None:
            if not self._clock.was_frozen(self._rules.frozen_after_ms):
                outboxes.wait(_CLOSE_WAIT_S)
            self._outboxes = None  # must end nothing: who reports would find it freed
            outboxes.close()  # used after that, so ended here (docs/decisions/0050)
            if outboxes.has_doubts:  # nothing is to be left out at the next start
                self._topics.disown()
        self._topics.close()
        self._aims.tell()

    def put(
        self, record: ProducerRecord, op: ReplicationOp, transaction: Transaction
    ) -> None:
        """Send a record that was made of an op, to the topic that it names.

        If it names none, to the op's. Raises HistoryError for one that it may not name.
        """
        name = record.topic
        if name is None:
            table = op.table
            name = self._router.topic(table.schema, table.name)
            if name is None:
                self._aims.drop(table)
                return
        elif name not in self._named:
            self._named.admit(name, op)
        self._put_at(name, record, op, transaction)

    def put_aside(
        self, record: ProducerRecord, op: ReplicationOp, transaction: Transaction
    ) -> None:
        """Send a record of the sink's own, to the topic that it names."""
        self._put_at(record.topic or "", record, op, transaction)

    def send_message(self, message: MessageOp, transaction: Transaction) -> bool:
        """Send a logical message, if it is wanted; False: no other before `ready`."""
        if self._messages is None:
            return True
        record = self._messages.made(message)
        if record is None:
            return True
        self.put_aside(record, stand_in(message), transaction)
        return self._outbox_of(record.topic or "").has_room

    def _write_message(self) -> Write | None:
        """Return what makes the record of a message; None: its content is one."""
        return None

    def _put_at(
        self,
        name: str,
        record: ProducerRecord,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        outbox = self._outbox_of(name)
        if (topic := self._topics.known.get(name)) is None:
            again = partial(self._put_at, name, record, op, transaction)
            self._await(name, outbox, transaction, again)
        else:
            self._put_made(outbox, topic, record, op, transaction)

    def _outbox_of(self, topic: str) -> OrderedProducer:
        if self._outboxes is None:
            raise WalstreamError("the sink was not ready: a defect")
        return self._outboxes.of(topic)

    def _await(
        self,
        name: str,
        outbox: OrderedProducer,
        transaction: Transaction,
        send: Callable[[], object],
    ) -> None:
        """Call `send` in turn, once a topic is known; count it until then.

        All topics that are waited for are asked for at once.
        """
        transaction.undelivered += 1
        self._awaited.add(name)

        def attempt() -> bool:
            if not self._topics.have({name, *self._awaited}):
                return False
            self._awaited.clear()
            self._meet(name)
            send()  # its records take the place of this attempt
            transaction.undelivered -= 1  # only now: one that is refused stays counted
            return True

        outbox.hold(attempt)

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
        if self._told is not None and value is not None:
            self._told.sent(topic.name, partition, op, transaction)
        if topic.tails and topic.has(self._delivered, partition, op, value):
            return
        headers = topic.headers(partition, self._headers)
        stamp = topic.timestamp_ms(op.commit_time, self._clock.now_ms)
        if value is not None and len(value) > ALONE:
            outbox.put_alone(topic, value, key, partition, stamp, transaction, headers)
        else:
            outbox.put(topic, value, key, partition, stamp, transaction, headers)

    def _put_made(
        self,
        outbox: OrderedProducer,
        topic: Topic,
        record: ProducerRecord,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        """Put a record that was not made by this sink's format."""
        self._rules.meter.tables.of(op.table.full_name).ops += 1
        made = told_time(record.timestamp, op.commit_time, self._clock.now_ms)
        stamp = topic.timestamp_ms(made, self._clock.now_ms)
        headers: Headers = [*record.headers]
        key, value = record.key, record.value
        at = partition_of(record, op, topic, self._partition)
        where = outbox, topic, key, value, op, transaction, headers, at, stamp
        self._put_headed(*where, named=False)

    def _put_headed(  # noqa: PLR0913, PLR0917 - a record without an object for each
        self,
        outbox: OrderedProducer,
        topic: Topic,
        key: bytes | None,
        value: bytes | None,
        op: ReplicationOp,
        transaction: Transaction,
        headers: Headers,
        partition: int,
        stamp: int,
        *,
        named: bool = True,
    ) -> bool:
        """Put a record with headers of its own in this partition; False: park it.

        One that is not `named` by its op is sent, though it may be there already.
        """
        size = size_of(key, value, headers)
        if size > topic.limit:
            self._park(topic.too_large(op, key or b"", size), transaction)
            return False
        if named and topic.tails and topic.has(self._delivered, partition, op, value):
            return True
        standing = topic.headers(partition, self._headers)
        if standing is None:
            standing = headers
        elif headers:
            standing = [*standing, *headers]
        if value is not None and len(value) > ALONE:
            outbox.put_alone(topic, value, key, partition, stamp, transaction, standing)
        else:
            outbox.put(topic, value, key, partition, stamp, transaction, standing)
        return True

    def _park(self, large: TooLarge, transaction: Transaction) -> None:
        """Leave word of a record that its topic does not take, or stop at it."""
        parking = self._topics.known.get(self._rules.parking)
        if parking is None or large.size_parked > parking.limit:
            raise large.refusal()
        self.tally.parked[large.op.table.full_name] += 1
        if self._told is not None:
            self._told.parked(large.op, transaction)
        large.tell(self._rules.name, parking.name)
        outbox, document = self._outbox_of(parking.name), large.document()
        self._put(outbox, parking, large.key, document, large.op, transaction)

    def _look_at_topics(self, kafka: ProducerPool) -> None:
        """See whether the topics are still what they were."""
        if (gone := self._watch.look(kafka)) is None:
            return
        if gone:
            self._forget(gone)
        self._fit.check(self._topics.limits)

    def _forget(self, gone: set[str]) -> None:
        """Let go of what is kept of topics, of those that are `gone` for sure."""

    def _meet(self, topic: str) -> None:
        self._watch.meet(topic)
        self._fit.check(self._topics.limits)
