"""A Kafka sink of the format `op` in an encoding whose schemas a registry has.

Its records have the header that names their op, for who looks at the end of a partition
without a schema. What has no row, or no key, has a null key, since readers look for an
id in any other; its table's name decides the partition all the same.
"""

from collections.abc import Iterable
from typing import Final

from walstream.config.librdkafka import ClientProperties
from walstream.formats.debezium.position import HEADER
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.registry.schema_ids import SchemaIds
from walstream.kafka.sink import KafkaSink
from walstream.kafka.topic import Topic
from walstream.kafka.topics import Topics
from walstream.kafka.transaction_position import DeliveredTransactions
from walstream.lsn import Lsn
from walstream.op import Kind, ReplicationOp
from walstream.pipeline.ledger import Transaction
from walstream.records.encoding import SinkRules
from walstream.records.record_size import Headers
from walstream.records.router import Router

_TRUNCATE: Final = Kind.TRUNCATE  # an enum's members are slow to look up
_MAGIC: Final = b"\0"  # what a key with an id begins with, and no table's name


class FramedSink(KafkaSink):
    """Sink of records that begin with their schemas' ids."""

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
        super().__init__(
            rules,
            router,
            topics,
            producer=producer,
            expected=expected,
            transactions=transactions,
            ids=ids,
        )
        self._lsn: Lsn = -1
        self._name_head = ""

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        """Count an op where transactions are told, then send it."""
        if self._told is not None and not op.snapshot:
            rows = self.rows_of(op)
            if rows or op.kind is _TRUNCATE:
                self._told.count(op, rows, transaction)
        return super().send(op, transaction)

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
        """Put a record in its key's partition, or this one; or park it."""
        if topic.name == self._rules.parking:
            super()._put(outbox, topic, key, value, op, transaction, partition)
            return
        if partition < 0:
            count = topic.partitions
            partition = self._partition(key, count) if count > 1 else 0
        if op.lsn != self._lsn:
            self._lsn = op.lsn
            self._name_head = f"{op.lsn}/"
        headers: Headers = [(HEADER, f"{self._name_head}{op.seq_id}".encode())]
        stamp = topic.timestamp_ms(op.commit_time, self._clock.now_ms)
        shown = key if key[:1] == _MAGIC else None
        where = outbox, topic, shown, value, op, transaction, headers, partition, stamp
        put = self._put_headed(*where)
        if put and self._told is not None and value is not None:
            self._told.sent(topic.name, partition, op, transaction)
