"""One sink of one task: rows become records, and every one is reported delivered.

The records are those of the stream's sink: its encoder, router, partitioner, producer
properties. A task that fails sends its chunk again from the start, so that nothing has
to be held in order behind a failure: the first one fails the task.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from walstream.errors import RecordRefused, Transient, WalstreamError
from walstream.formats import ENCODERS
from walstream.lsn import Lsn, show
from walstream.op import Kind, ReplicationOp
from walstream.partitioner import PARTITIONERS
from walstream.routing import Route, Router
from walstream.row import Row
from walstream.spark.chunk import Chunk

_RECORD_OVERHEAD: Final = 200  # of a batch and a record around key and value, at most
_POLL_S: Final = 0.1
_EPOCH_S: Final = 946_684_800  # 2000-01-01, from where PostgreSQL counts
_TRANSACTION_S: Final = 15 * 60  # the broker's transaction.max.timeout.ms
_HEADER: Final = "walstream-source"


@dataclass(frozen=True, slots=True)
class TopicShape:
    """What a record must fit."""

    partitions: int
    limit: int  # max.message.bytes


@dataclass(frozen=True, slots=True)
class Target:
    """One sink, as a task needs it; picklable."""

    sink: str
    format: str
    partitioner: str
    router: Router
    topics: Mapping[str, TopicShape]  # those of the tables that are read
    source_header: bytes  # system_identifier/database/epoch
    failure: Callable[[KafkaError, str], WalstreamError]
    producer: Mapping[str, Any] = field(repr=False)  # complete
    transactions: str = ""  # a chunk is one transaction: what their names begin with


class Outlet:
    """The records of one chunk for one sink."""

    def __init__(
        self, target: Target, chunk: Chunk, lsn: Lsn, check: Callable[[], None]
    ) -> None:
        """Fence an older attempt where transactions are used; `check` may end it."""
        table = chunk.relation.table
        self._target = target
        self._check = check
        self._chunk = chunk
        self._route: Route | None = target.router.route(table)
        self._encode = ENCODERS[target.format](table).encode
        self._partition = PARTITIONERS[target.partitioner]
        self._op = ReplicationOp(
            Kind.INSERT, table, lsn, chunk.first_seq_id, row_lsn=lsn, snapshot=True
        )
        self._unwritten: set[int] = set()
        self._sent = 0
        self._delivered = 0
        self._failed: WalstreamError | None = None
        self.bytes = 0
        self.last: dict[int, int] = {}  # offsets, by partition
        if self._route is not None:
            self._shape = target.topics[self._route.topic]
            self._unwritten = set(range(self._shape.partitions))
            self._producer = self._open()

    def _open(self) -> Producer:
        target = self._target
        properties = dict(target.producer)
        if target.transactions:
            properties |= {
                "transactional.id": f"{target.transactions}-{self._chunk.number}",
                "transaction.timeout.ms": _TRANSACTION_S * 1000,
                "message.timeout.ms": _TRANSACTION_S * 1000,
            }
        logger = logging.getLogger("librdkafka")
        try:
            producer = Producer(
                {**properties, "error_cb": lambda _error: None}, logger=logger
            )
            if target.transactions:
                producer.init_transactions(60)
                producer.begin_transaction()
        except KafkaException as error:
            raise target.failure(
                error.args[0], f"a producer of sink {target.sink!r}"
            ) from None
        return producer

    def send(self, rows: Sequence[Row], index: int) -> None:
        """Send rows, the first of them the chunk's `index`-th."""
        route = self._route
        if route is None:
            return
        self._serve(0)
        op = self._op
        op.commit_time = int((time.time() - _EPOCH_S) * 1_000_000)
        seq_id = self._chunk.first_seq_id + index
        topic, render = route.topic, route.key
        partitions, limit = self._shape.partitions, self._shape.limit - _RECORD_OVERHEAD
        encode, choose, produce = self._encode, self._partition, self._producer.produce
        report, size, partition = self._report, 0, 0
        for row in rows:
            op.new = row
            op.seq_id = seq_id
            seq_id += 1
            value = encode(op)
            key = render(row)
            length = len(value) + len(key)
            size += length
            if length > limit:
                self._refuse(length)
            if partitions > 1:
                partition = choose(key, partitions)
            try:
                if self._unwritten:
                    raise BufferError  # the careful way knows of headers
                produce(topic, value, key, partition, report)
            except BufferError:
                self._produce(topic, value, key, partition)
        self._sent += len(rows)
        self.bytes += size

    def _produce(self, topic: str, value: bytes, key: bytes, partition: int) -> None:
        """Send one record, with a header if it is the first; wait for room."""
        headers: list[tuple[str, str | bytes | None]] = []
        if partition in self._unwritten:
            self._unwritten.discard(partition)
            headers = [(_HEADER, self._target.source_header)]
        while True:
            try:
                self._producer.produce(
                    topic, value, key, partition, self._report, headers=headers
                )
            except BufferError:
                self._check()
                self._serve(_POLL_S)
            else:
                return

    def _report(self, error: KafkaError | None, message: Message) -> None:
        """Count one delivery. Called by the producer: must not raise."""
        if error is None:
            self._delivered += 1
            self.last[message.partition() or 0] = message.offset() or 0
        elif self._failed is None:
            where = f"{message.topic()!r} partition {message.partition()}"
            self._failed = self._target.failure(error, f"delivering to {where}")

    def _serve(self, wait_s: float) -> None:
        try:
            self._producer.poll(wait_s)
        except KafkaException as error:
            if self._failed is None:
                self._failed = self._target.failure(
                    error.args[0], "the producer gave up"
                )
        if self._failed is not None:
            raise self._failed

    def finish(self) -> None:
        """Wait until every record is delivered; raise when one is not."""
        if self._route is None:
            return
        while len(self._producer):
            self._check()
            self._serve(_POLL_S)
        self._serve(0)
        if self._delivered != self._sent:
            raise Transient(
                f"sink {self._target.sink!r}: {self._sent - self._delivered} of"
                f" {self._sent} records were not reported delivered"
            )
        if self._target.transactions:
            try:
                self._producer.commit_transaction()
            except KafkaException as error:
                raise self._target.failure(
                    error.args[0], "committing a chunk"
                ) from None

    def abandon(self) -> None:
        """Give up what is in flight."""
        if self._route is not None:
            self._producer.purge()
            self._producer.poll(0)

    def _refuse(self, length: int) -> None:
        """Stop at a record that the topic does not take."""
        op = self._op
        topic = self._route.topic if self._route else ""
        raise RecordRefused(
            f"a record of table {op.table.full_name!r} at ({show(op.lsn)},"
            f" {op.seq_id}) has {length + _RECORD_OVERHEAD} bytes, topic {topic!r}"
            f" takes {self._shape.limit}",
            hint=f"raise max.message.bytes of {topic!r}, then: walstream run",
        )
