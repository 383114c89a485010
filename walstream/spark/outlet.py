"""One sink of one task: rows become records, and every one is reported delivered.

The records are those of the stream's sink: its encoder, router, partitioner, producer
properties.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import add

from walstream.errors import RecordRefused
from walstream.formats import LineEncoder, encoder_of
from walstream.formats.context import Context
from walstream.lsn import Lsn, show
from walstream.op import EPOCH_S, Kind, ReplicationOp
from walstream.partitioner import for_all
from walstream.routing import Route, Router
from walstream.row import Row
from walstream.spark.chunk import Chunk, transactional_id
from walstream.spark.copy_text import plain_keys, rows
from walstream.spark.sender import RECORD_OVERHEAD, Outgoing, Sender


@dataclass(frozen=True, slots=True)
class TopicShape:
    """What a record must fit."""

    partitions: int
    limit: int  # max.message.bytes


@dataclass(frozen=True, slots=True)
class Target:
    """One sink, as a task needs it; picklable."""

    outgoing: Outgoing
    format: str
    partitioner: str
    router: Router
    topics: Mapping[str, TopicShape]  # those of the tables that are read
    context: Context
    transactions: str = ""  # a chunk is one transaction: what their names begin with


class Outlet:
    """The records of one chunk for one sink."""

    def __init__(
        self, target: Target, chunk: Chunk, lsn: Lsn, check: Callable[[], None]
    ) -> None:
        """Fence an older attempt where transactions are used; `check` may end it."""
        table = chunk.relation.table
        self._target = target
        self._chunk = chunk
        self._route: Route | None = target.router.route(table, target.context.origin)
        self._encoder = encoder_of(target.format)(table, target.context)
        self._partitions = for_all(target.partitioner)
        self._op = ReplicationOp(
            Kind.INSERT, table, lsn, chunk.first_seq_id, row_lsn=lsn, snapshot=True
        )
        self._sender: Sender | None = None
        self.bytes = 0
        if self._route is not None:
            self._shape = target.topics[self._route.topic]
            self._sender = Sender(target.outgoing, check, self._transaction)

    @property
    def _transaction(self) -> str:
        beginning = self._target.transactions
        if not beginning:
            return ""
        return transactional_id(beginning, self._chunk.number)

    def send(self, block: bytes, index: int) -> int:
        """Send lines of COPY text, the first of them row `index`; count them."""
        route, sender = self._route, self._sender
        if route is None or sender is None:
            return block.count(b"\n")
        sender.serve(0)
        values, keys = self._encode(block, route, self._chunk.first_seq_id + index)
        self._check_sizes(values, keys, index)
        topic, partitions = route.topic, self._shape.partitions
        chosen = self._partitions(keys, partitions) if partitions > 1 else repeat(0)
        produce, reports = sender.produce, sender.reports
        for value, key, partition in zip(values, keys, chosen):  # noqa: B905 - endless
            try:
                # without a report yet: its first record, which needs a header
                produce(topic, value, key, partition, reports[partition])
            except (BufferError, KeyError):
                sender.send(topic, value, key, partition)
        sender.sent += len(values)
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
                keys = plain_keys(block, route.key.columns, route.key.around)
                return lines, keys or self._keys(route, rows(block, width))
        op.commit_time = int((time.time() - EPOCH_S) * 1_000_000)
        table = rows(block, width)
        values = []
        for number, row in enumerate(table, seq_id):
            op.new = row
            op.seq_id = number
            values.append(encoder.encode(op))
        return values, self._keys(route, table)

    def _keys(self, route: Route, table: Iterable[Row]) -> list[bytes]:
        op, keys = self._op, []
        for op.new in table:
            # a copy of the right size: what orjson made is a kilobyte, cut short, and
            # costs four times as much when it is kept
            keys.append(b"%b" % route.key.render(op))
        return keys

    def _check_sizes(
        self, values: Sequence[bytes], keys: Sequence[bytes], index: int
    ) -> None:
        """Stop at a record that the topic does not take."""
        sizes = list(map(add, map(len, values), map(len, keys)))
        self.bytes += sum(sizes)
        largest = max(sizes, default=0)
        if largest + RECORD_OVERHEAD <= self._shape.limit:
            return
        seq_id = self._chunk.first_seq_id + index + sizes.index(largest)
        topic = self._route.topic if self._route else ""
        raise RecordRefused(
            f"a record of table {self._op.table.full_name!r} at"
            f" ({show(self._op.lsn)}, {seq_id}) has {largest + RECORD_OVERHEAD} bytes,"
            f" topic {topic!r} takes {self._shape.limit}",
            hint=f"raise max.message.bytes of {topic!r}, then: walstream run",
        )

    @property
    def last(self) -> dict[int, int]:
        """The offset of the last record that was delivered, by partition."""
        return self._sender.last if self._sender is not None else {}

    def finish(self) -> None:
        """Wait until every record is delivered; raise when one is not."""
        if self._sender is not None:
            self._sender.finish()

    def abandon(self) -> None:
        """Give up what is in flight."""
        if self._sender is not None:
            self._sender.abandon()
