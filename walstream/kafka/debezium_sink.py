"""A Kafka sink whose records are Debezium's: null keys, tombstones, headers of keys.

What else differs from other formats: a Truncate is one record without a key, in the
first partition, and the time of processing stands in each record.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from walstream.config.librdkafka import ClientProperties
from walstream.errors import WalstreamError
from walstream.formats.debezium import (
    DebeziumOptions,
    DebeziumRecords,
    MessageEncoder,
    SinkTurn,
)
from walstream.kafka.debezium_heartbeat import Heartbeats
from walstream.kafka.debezium_losses import Losses
from walstream.kafka.registry.schema_ids import SchemaIds
from walstream.kafka.sink import KafkaSink
from walstream.kafka.target import Target
from walstream.kafka.topic import Topic
from walstream.kafka.topics import Topics
from walstream.kafka.transaction_position import DeliveredTransactions
from walstream.op import Kind, LargeOp, MessageOp, ReplicationOp, halves
from walstream.pipeline.ledger import Transaction, alone
from walstream.records.encoding import SinkRules
from walstream.records.large_op import plain
from walstream.records.message_records import Write
from walstream.records.producer_record import ProducerRecord, SchemaRecord
from walstream.records.record_size import RECORD_OVERHEAD, Headers
from walstream.records.router import Router
from walstream.telemetry import runtime

_LOOK_EVERY_S: Final = 1.0
_DELETE: Final = Kind.DELETE  # an enum's members are slow to look up
_TRUNCATE: Final = Kind.TRUNCATE


class DebeziumSink(KafkaSink):
    """A sink of the formats `debezium` and `debezium_row`."""

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
        """All is what a KafkaSink takes; compiled, it is passed on by name alone."""
        self._turn = SinkTurn()
        context = replace(rules.context, turn=self._turn)
        super().__init__(
            replace(rules, context=context),
            router,
            topics,
            producer=producer,
            expected=expected,
            transactions=transactions,
            ids=ids,
        )
        self._losses = Losses(rules.name)
        self._next_look = 0.0
        self._whose: Transaction | None = None  # whose origin the turn has
        options = context.debezium or DebeziumOptions("")
        self._heartbeats: Heartbeats | None = None
        if rules.heartbeat_s:
            self._heartbeats = Heartbeats(options, rules.heartbeat_s)

    def ready(self) -> bool:
        """Set the clock of the records that follow, then do as any sink does."""
        self._turn.begin(runtime.time_ns())
        now = runtime.monotonic()
        if now >= self._next_look:
            self._next_look = now + _LOOK_EVERY_S
            self._look_at_losses()
        room = super().ready()
        if room and self._heartbeats is not None:
            self._beat(self._heartbeats)
        return room

    def _beat(self, heartbeats: Heartbeats) -> None:
        beat = heartbeats.due()
        if beat is not None:
            self.put_aside(*beat, alone(0))  # no position waits for it

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        """Count an op where transactions are told, then send it."""
        self._turn_to(transaction)
        if self._told is not None and not op.snapshot:
            rows = self.rows_of(op)
            if rows:
                self._told.count(op, rows, transaction)
        return super().send(op, transaction)

    def send_message(self, message: MessageOp, transaction: Transaction) -> bool:
        self._turn_to(transaction)
        return super().send_message(message, transaction)

    def _turn_to(self, transaction: Transaction) -> None:
        """Let the records that follow have the origin of this transaction."""
        if transaction is not self._whose:
            self._whose = transaction
            self._turn.come_from(*transaction.origin)

    def _hold(
        self, target: Target, transaction: Transaction, send: Callable[[], object]
    ) -> None:
        def later() -> None:
            self._turn_to(transaction)
            send()

        super()._hold(target, transaction, later)

    def _write_message(self) -> Write | None:
        rules = self._rules
        messages, options = rules.messages, rules.context.debezium
        if messages is None or options is None or not messages.debezium:
            return None
        encoder = MessageEncoder(options, self._turn)

        def write(message: MessageOp, topic: str) -> ProducerRecord:
            value = encoder.encode(
                message.prefix,
                message.content,
                (message.lsn, message.row_lsn),
                (message.xid, message.commit_time),
            )
            key = encoder.key(message.prefix)
            return SchemaRecord(key, value, topic, schemas=encoder.schemas)

        return write

    def rows_of(self, op: ReplicationOp) -> int:
        """Count records but tombstones: a Truncate is one, if it is sent."""
        if op.kind is _TRUNCATE:
            target = self._target(op.table)
            sent = self._rules.on_truncate == "send"
            return int(sent and target is not None and target.aim.truncates)
        rows = super().rows_of(op)
        if rows > 1:
            target = self._target(op.table)
            if target is not None and self._is_of_others(target, op):
                return 1
        return rows

    def close(self) -> None:
        """Log what was lost last; then close as any sink does."""
        self._look_at_losses()
        super().close()

    def _look_at_losses(self) -> None:
        for table, target in self._targets.items():
            if target is not None and isinstance(target.aim.records, DebeziumRecords):
                self._losses.look(table.full_name, target.aim.records.columns)

    def _put_truncate(
        self,
        target: Target,
        topic: Topic,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        if not self._aims.sends_truncate(op, target.aim):
            return
        records = _records(target)
        headers = records.headers(op)
        for value in records.values(op):
            self._put_record(target, topic, None, value, op, transaction, headers, 0)

    def _put_halves(
        self,
        target: Target,
        topic: Topic,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        if self._is_of_others(target, op):
            self._put_half(target, topic, op, transaction, [])
            return
        key = _records(target).key(target.aim.route.key.columns)
        for half, header in zip(halves(op), key.change_headers(op), strict=True):
            self._put_half(target, topic, half, transaction, [header])

    @staticmethod
    def _is_of_others(target: Target, op: ReplicationOp) -> bool:
        """Return whether it is the key of another sink alone that changed."""
        old, new = op.old, op.new
        columns = target.aim.route.key.columns
        if old is None or new is None:
            return False
        return all(old[index] == new[index] for index in columns)

    def _put_row(
        self,
        target: Target,
        topic: Topic,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        if type(op) is LargeOp or op.kind is _DELETE:
            self._put_half(target, topic, op, transaction, [])
            return
        records = _records(target)  # one value, without a list: a tenth of the row
        key = None if target.keyless else target.key(op)
        value, headers = records.encode(op), records.headers(op)
        self._put_record(target, topic, key, value, op, transaction, headers)

    def _put_half(
        self,
        target: Target,
        topic: Topic,
        op: ReplicationOp,
        transaction: Transaction,
        more: Headers,
    ) -> None:
        records = _records(target)
        headers = records.headers(op)
        if more:
            headers = [*headers, *more]
        if type(op) is LargeOp and op.kind is _DELETE:
            op = plain(op)  # of such a row little or nothing is sent
        if type(op) is LargeOp:
            key, record = target.large(op)
            size = record.size() + len(key) + RECORD_OVERHEAD
            if size > topic.limit:
                self._park(topic.too_large(op, key, size), transaction)
                return
            values: list[bytes | None] = [record.value()]
        else:
            key = target.key(op)
            values = records.values(op)
        shown = None if target.keyless else key
        if not self._tombstones and len(values) > 1:
            values = values[:1]
        for value in values:
            self._put_record(target, topic, shown, value, op, transaction, headers)

    def _put_record(  # noqa: PLR0913, PLR0917 - a record without an object for each
        self,
        target: Target,
        topic: Topic,
        key: bytes | None,
        value: bytes | None,
        op: ReplicationOp,
        transaction: Transaction,
        headers: Headers,
        partition: int = -1,
    ) -> None:
        """Put a record in its partition, or park it."""
        if partition < 0:
            deciding = target.aim.route.key.table_key if key is None else key
            count = topic.partitions
            partition = self._partition(deciding, count) if count > 1 else 0
        put = self._put_headed(
            target.outbox,
            topic,
            key,
            value,
            op,
            transaction,
            headers,
            partition,
            topic.timestamp_ms(op.commit_time, self._clock.now_ms),
        )
        if put and self._told is not None and value is not None:
            self._told.sent(topic.name, partition, op, transaction)


def _records(target: Target) -> DebeziumRecords:
    records = target.records
    if not isinstance(records, DebeziumRecords):
        raise WalstreamError("a sink of Debezium's records without them: a defect")
    return records
