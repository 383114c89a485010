"""The part of a Kafka sink below any format: finished records."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from walstream.config.librdkafka import ClientProperties
from walstream.formats.encodings.subject import FramedPart
from walstream.kafka.handler_record import partition_of, told_time
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.registry.schema_ids import SchemaIds
from walstream.kafka.topic import Topic
from walstream.kafka.topic_sink import TopicSink
from walstream.kafka.topics import Topics
from walstream.kafka.transaction_position import DeliveredTransactions
from walstream.kafka.transaction_topic import transaction_topic
from walstream.lsn import Lsn
from walstream.op import MessageOp, ReplicationOp
from walstream.pipeline.ledger import Transaction
from walstream.records.encoding import EncodingPlan, SinkRules
from walstream.records.message_records import MessageRecords, Write, stand_in
from walstream.records.message_router import MessageRouter
from walstream.records.named_topics import NamedTopics
from walstream.records.oversize import TooLarge
from walstream.records.partitioner import PARTITIONERS
from walstream.records.producer_record import ProducerRecord, SchemaRecord
from walstream.records.record_size import RECORD_OVERHEAD, Headers, size_of
from walstream.records.router import Router, spelling
from walstream.telemetry.tally import Tally

if TYPE_CHECKING:
    from walstream.kafka.registry.aside import AsideEncoding

ALONE: Final = 8 << 20  # bytes of a record: more are not copied twice


class RecordSink(TopicSink):
    """Sink of records that are finished."""

    def __init__(  # noqa: PLR0913 - keywords
        self,
        rules: SinkRules,
        router: Router,
        topics: Topics,
        *,
        producer: ClientProperties,
        expected: Iterable[str] = (),
        transactions: DeliveredTransactions | None = None,
        ids: SchemaIds | None = None,
    ) -> None:
        """All is what a TopicSink takes, and what routes its records."""
        super().__init__(
            rules,
            topics,
            producer=producer,
            expected=expected,
            transactions=transactions,
            ids=ids,
        )
        self._router = router
        self._partition = PARTITIONERS[rules.partitioner]
        self._aims = EncodingPlan(rules, router)
        self._named = NamedTopics(router, rules.max_named_topics)
        for topic in (rules.parking, *rules.reserved):
            self._named.reserve(topic)
        self._asides = _asides(rules) if ids is not None else None
        self._messages: MessageRecords | None = None
        if rules.messages is not None:
            routed = MessageRouter(
                rules.messages, spelling(rules.format), self._named.is_taken
            )
            self._messages = MessageRecords(
                rules.name, routed, self._aims.tally, self._write_message()
            )
        self._told = transaction_topic(rules, topics, self._put_told, self.put_aside)
        # where records come from: of the first in each partition, and some others
        self._headers: Headers = [("walstream-source", rules.source_header)]

    def ready(self) -> bool:
        """Do as a TopicSink does; say how far all is delivered, where it is told."""
        room = super().ready()
        if room and self._told is not None:
            self._told.tell_resolved()
        return room

    def close(self) -> None:
        super().close()
        self._aims.tell()

    def resolve(self, lsn: Lsn) -> None:
        """Note that each op of a transaction below `lsn` was delivered."""
        if self._told is not None:
            self._told.resolve(lsn)

    @property
    def tally(self) -> Tally:
        """Counts of parked and dropped ops, by table."""
        return self._aims.tally

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
        if not self._has(op, transaction):
            self._put_at(name, record, op, transaction)

    def put_aside(
        self, record: ProducerRecord, op: ReplicationOp, transaction: Transaction
    ) -> None:
        """Send a record of the sink's own, to the topic that it names."""
        self._put_at(record.topic or "", record, op, transaction)

    def _put_told(
        self, record: ProducerRecord, op: ReplicationOp, transaction: Transaction
    ) -> None:
        """Send a record about a transaction, unless Kafka has it."""
        if not self._has(op, transaction):
            self.put_aside(record, op, transaction)

    def send_message(self, message: MessageOp, transaction: Transaction) -> bool:
        """Send a logical message, if it is wanted; False: no other before `ready`."""
        if self._messages is None:
            return True
        record = self._messages.made(message)
        if record is None:
            return True
        known = self._transactions
        if known is not None and known.has_message(message, transaction):
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
        asides = self._asides
        parts: Sequence[FramedPart] = ()
        if asides is not None and isinstance(record, SchemaRecord):
            parts = asides.parts(name, record)
        topic = self._topics.known.get(name)
        if topic is None or (parts and not self._have_ids(parts)):
            again = partial(self._put_at, name, record, op, transaction)
            self._await(name, outbox, transaction, again, parts)
            return
        if asides is not None and isinstance(record, SchemaRecord):
            record = asides.encode(name, record)
        self._put_made(outbox, topic, record, op, transaction)

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
        if self._has(op, transaction) or (
            topic.tails and topic.has(self._delivered, partition, op, value)
        ):
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
        if named and (
            self._has(op, transaction)
            or (topic.tails and topic.has(self._delivered, partition, op, value))
        ):
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


def _asides(rules: SinkRules) -> "AsideEncoding":
    from walstream.kafka.registry import aside  # noqa: PLC0415 - few need it

    context = rules.context
    return aside.AsideEncoding(context.encoding, context.subjects)
