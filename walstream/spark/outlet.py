"""One sink of one task: rows become records, and every one is reported delivered.

The records are those of the stream's sink: its encoder, router, partitioner, producer
properties. A task that fails sends its chunk again from the start, so that nothing has
to be held in order behind a failure: the first one fails the task.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from operator import add
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from walstream.errors import RecordRefused, Transient, WalstreamError
from walstream.formats import ENCODERS, LineEncoder
from walstream.lsn import Lsn, show
from walstream.op import EPOCH_S, Kind, ReplicationOp
from walstream.partitioner import for_all
from walstream.routing import KeyRenderer, Route, Router
from walstream.row import Row
from walstream.spark.chunk import Chunk, transactional_id
from walstream.spark.copy_text import plain_keys, rows

_RECORD_OVERHEAD: Final = 200  # of a batch and a record around key and value, at most
_POLL_S: Final = 0.1
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
        self._encoder = ENCODERS[target.format](table)
        self._partitions = for_all(target.partitioner)
        self._op = ReplicationOp(
            Kind.INSERT, table, lsn, chunk.first_seq_id, row_lsn=lsn, snapshot=True
        )
        self._sent = 0
        self._delivered = 0
        self._failed: WalstreamError | None = None
        self.bytes = 0
        self._last: dict[int, Message] = {}  # by partition
        self._reports: dict[int, Callable[[KafkaError | None, Message], None]] = {}
        if self._route is not None:
            self._shape = target.topics[self._route.topic]
            self._producer = self._open()

    def _open(self) -> Producer:
        target = self._target
        properties = dict(target.producer)
        if target.transactions:
            properties |= {
                "transactional.id": transactional_id(
                    target.transactions, self._chunk.number
                )
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

    def send(self, block: bytes, index: int) -> int:
        """Send lines of COPY text, the first of them row `index`; count them."""
        route = self._route
        if route is None:
            return block.count(b"\n")
        self._serve(0)
        values, keys = self._encode(block, route, self._chunk.first_seq_id + index)
        self._check_sizes(values, keys, index)
        topic, partitions = route.topic, self._shape.partitions
        chosen = self._partitions(keys, partitions) if partitions > 1 else repeat(0)
        produce, reports = self._producer.produce, self._reports
        for value, key, partition in zip(values, keys, chosen):  # noqa: B905 - endless
            try:
                # without a report yet: its first record, which needs a header
                produce(topic, value, key, partition, reports[partition])
            except (BufferError, KeyError):
                self._produce(topic, value, key, partition)
        self._sent += len(values)
        return len(values)

    def _encode(
        self, block: bytes, route: Route, seq_id: int
    ) -> tuple[list[bytes], list[bytes]]:
        """Give the rows' values and keys: in bulk where nothing needs a closer look."""
        encoder, op = self._encoder, self._op
        width = len(op.table.columns)
        if isinstance(encoder, LineEncoder):
            lines = encoder.encode_lines(block, op.lsn, seq_id)
            if lines is not None:
                keys = plain_keys(block, route.columns, route.around)
                return lines, keys or _keys(route.key, rows(block, width))
        op.commit_time = int((time.time() - EPOCH_S) * 1_000_000)
        table = rows(block, width)
        values = []
        for number, row in enumerate(table, seq_id):
            op.new = row
            op.seq_id = number
            values.append(encoder.encode(op))
        return values, _keys(route.key, table)

    def _check_sizes(
        self, values: Sequence[bytes], keys: Sequence[bytes], index: int
    ) -> None:
        """Stop at a record that the topic does not take."""
        sizes = list(map(add, map(len, values), map(len, keys)))
        self.bytes += sum(sizes)
        largest = max(sizes, default=0)
        if largest + _RECORD_OVERHEAD <= self._shape.limit:
            return
        seq_id = self._chunk.first_seq_id + index + sizes.index(largest)
        topic = self._route.topic if self._route else ""
        raise RecordRefused(
            f"a record of table {self._op.table.full_name!r} at"
            f" ({show(self._op.lsn)}, {seq_id}) has {largest + _RECORD_OVERHEAD} bytes,"
            f" topic {topic!r} takes {self._shape.limit}",
            hint=f"raise max.message.bytes of {topic!r}, then: walstream run",
        )

    def _produce(self, topic: str, value: bytes, key: bytes, partition: int) -> None:
        """Send one record, with a header if it is the first; wait for room."""
        headers: list[tuple[str, str | bytes | None]] = []
        if partition not in self._reports:
            self._reports[partition] = partial(self._report, partition)
            headers = [(_HEADER, self._target.source_header)]
        report = self._reports[partition]
        while True:
            try:
                self._producer.produce(
                    topic, value, key, partition, report, headers=headers
                )
            except BufferError:
                self._check()
                self._serve(_POLL_S)
            else:
                return

    def _report(
        self, partition: int, error: KafkaError | None, message: Message
    ) -> None:
        """Count one delivery. Called by the producer: must not raise."""
        if error is None:
            self._delivered += 1
            self._last[partition] = message
        elif self._failed is None:
            where = f"{message.topic()!r} partition {partition}"
            self._failed = self._target.failure(error, f"delivering to {where}")

    @property
    def last(self) -> dict[int, int]:
        """The offset of the last record that was delivered, by partition."""
        return {
            partition: message.offset() or 0
            for partition, message in self._last.items()
        }

    def _serve(self, wait_s: float, *, flush: bool = False) -> None:
        """Hear of deliveries; `flush`: with no more records to come."""
        try:
            # a flush does not wait for batches to fill
            (self._producer.flush if flush else self._producer.poll)(wait_s)
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
            self._serve(_POLL_S, flush=True)
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


def _keys(render: KeyRenderer, table: Iterable[Row]) -> list[bytes]:
    # a copy of the right size: what orjson made is a kilobyte, cut short, and costs
    # four times as much when it is kept
    return [b"%b" % render(row) for row in table]
