"""One sink of one task: rows become records, and every one is reported delivered.

The records are those of the stream's sink: its encoder, router, partitioner, producer
properties.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import repeat
from operator import add
from typing import Final, Self

from walstream.formats import Encoder, LineEncoder, RecordEncoder
from walstream.formats.context import Context
from walstream.formats.encodings import encoder_in, parts_of
from walstream.formats.encodings.subject import set_heads
from walstream.kafka.bulk_producer import NOT_TAKEN, BulkProducer, Outgoing
from walstream.lsn import Lsn
from walstream.op import Kind, ReplicationOp, Table, postgres_time
from walstream.records.handlers.chain import NAMING, Chain, Spec, is_outbox
from walstream.records.oversize import TooLarge
from walstream.records.partitioner import for_all
from walstream.records.record_key import with_own_key
from walstream.records.record_size import RECORD_OVERHEAD
from walstream.records.router import Route, Router
from walstream.row import Row
from walstream.sources.postgres.backfill.chunk import Chunk, transactional_id
from walstream.sources.postgres.backfill.copy_text import plain_keys, rows
from walstream.sources.postgres.backfill.task_handlers import HandledRows, Made
from walstream.spark.outcome import ColumnLosses
from walstream.telemetry import runtime
from walstream.telemetry.tally import Tally


@dataclass(frozen=True, slots=True)
class TopicShape:
    """Limits of a record."""

    partitions: int
    limit: int  # bytes of a record
    advice: str = ""  # what takes a larger one; "": max.message.bytes
    headers: tuple[tuple[str, bytes], ...] = ()  # of every record


_NO_TOPIC: Final = TopicShape(1, 1 << 62)


@dataclass(frozen=True, slots=True)
class TaskTarget:
    """One sink, as a task needs it; picklable."""

    outgoing: Outgoing
    format: str
    partitioner: str
    router: Router
    topics: Mapping[str, TopicShape]  # those of the tables that are read
    context: Context
    transactions: str = ""  # a chunk is one transaction: what their names begin with
    handlers: tuple[Spec, ...] = ()
    parking: str = ""  # the topic of what is too large for its own; "": that stops
    dry: bool = False  # nothing is sent: there are no topics

    def of(self, table: Table) -> Self:
        """Return what is needed for one table: of thousands of topics, its own."""
        router = deepcopy(self.router)  # it remembers whom it was asked for
        route = router.route(table, self.context.origin)
        wanted = {self.parking, route.topic if route is not None else ""}
        topics = {name: self.topics[name] for name in wanted & self.topics.keys()}
        return replace(self, router=router, topics=topics)


class TaskSink:
    """The records of one chunk for one sink."""

    def __init__(
        self, target: TaskTarget, chunk: Chunk, lsn: Lsn, check: Callable[[], None]
    ) -> None:
        """Fence an older attempt where transactions are used; `check` may end it."""
        table = chunk.relation.table
        self._target = target
        self._chunk = chunk
        self._route: Route | None = None
        if not is_outbox(target.handlers, table.full_name):
            self._route = target.router.route(table, target.context.origin)
        context = replace(target.context, backfill=True)
        make = encoder_in(context.encoding, target.format)
        self._encoder = make(table, context)
        if self._route is not None:
            self._route = with_own_key(self._route, self._encoder, table)
            if not (target.dry or target.handlers):
                columns = self._route.key.columns
                parts = parts_of(self._encoder, self._route.topic, columns, context)
                set_heads(parts, context.ids)
        self._handled: HandledRows | None = None
        if target.handlers:
            chain = Chain(target.handlers, several=target.format not in NAMING)
            self._handled = HandledRows(chain, target.router, make, context, check)
        self.tally = self._handled.tally if self._handled is not None else Tally()
        self._partitions = for_all(target.partitioner)
        self._op = ReplicationOp(
            Kind.INSERT, table, lsn, chunk.first_seq_id, row_lsn=lsn, snapshot=True
        )
        self._sender: BulkProducer | None = None
        self.bytes = 0
        self._shape = _NO_TOPIC
        if self._route is not None and not target.dry:
            self._shape = target.topics[self._route.topic]
            headers = self._shape.headers
            outgoing = target.outgoing
            if headers:
                outgoing = replace(outgoing, standing=headers)
            self._sender = BulkProducer(outgoing, check, self._transaction)

    @property
    def _transaction(self) -> str:
        beginning = self._target.transactions
        if not beginning:
            return ""
        return transactional_id(beginning, self._chunk.number)

    def send(self, block: bytes, index: int) -> int:
        """Send lines of COPY text, the first of them row `index`; count them."""
        route, sender = self._route, self._sender
        count = block.count(b"\n")
        if route is None:
            return count
        made = self._made(block, route, self._chunk.first_seq_id + index)
        if sender is None:
            return count
        sender.serve(0)
        topic, partitions = route.topic, self._shape.partitions
        values, keys = made.values, made.keys
        chosen = self._partitions(keys, partitions) if partitions > 1 else repeat(0)
        sender.sent += len(values)
        if made.headers:
            shown = repeat(None) if route.key.null else keys
            records = zip(values, shown, chosen, made.headers)  # noqa: B905 - endless
            for value, key, partition, headers in records:
                sender.send(topic, value, key, partition, headers)
            return count
        produce, reports = sender.produce, sender.reports
        for value, key, partition in zip(values, keys, chosen):  # noqa: B905 - endless
            try:
                # without a report yet: its first record, which needs a header
                produce(topic, value, key, partition, reports[partition])
            except NOT_TAKEN:
                sender.send(topic, value, key, partition)
        return count

    def _made(self, block: bytes, route: Route, seq_id: int) -> Made:
        """Return the records that fit the topic."""
        if self._handled is None:
            return self._fitting(self._encode(block, route, seq_id))
        op = self._op
        op.commit_time = postgres_time(runtime.time())
        table = rows(block, len(op.table.columns))
        return self._fitting(self._handled.made(op, table, seq_id))

    def _encode(self, block: bytes, route: Route, seq_id: int) -> Made:
        """Return the rows' records, in bulk where nothing needs a look."""
        encoder, op = self._encoder, self._op
        width = len(op.table.columns)
        if isinstance(encoder, LineEncoder):
            lines = encoder.encode_lines(block, op.lsn, seq_id)
            if lines is not None:
                keys = plain_keys(block, route.key.columns, route.key.around)
                keys = keys or self._keys(route, rows(block, width))
                return Made(lines, keys, range(seq_id, seq_id + len(lines)))
        op.commit_time = postgres_time(runtime.time())
        table = rows(block, width)
        records = encoder if isinstance(encoder, RecordEncoder) else None
        values, headers = [], []
        for number, row in enumerate(table, seq_id):
            op.new = row
            op.seq_id = number
            values.append(encoder.encode(op))
            if records is not None:
                headers.append(records.headers(op))
        numbers = range(seq_id, seq_id + len(values))
        return Made(values, self._keys(route, table), numbers, headers)

    def _keys(self, route: Route, table: Iterable[Row]) -> list[bytes]:
        op, keys = self._op, []
        for op.new in table:
            # a copy of the right size: what orjson made is a kilobyte, cut short, and
            # costs four times as much when it is kept
            keys.append(b"%b" % route.key.render(op))
        return keys

    def _fitting(self, made: Made) -> Made:
        """Leave out what the topic does not take, and park it; or stop at it."""
        sizes = list(map(add, map(len, made.values), map(len, made.keys)))
        self.bytes += sum(sizes)
        limit = self._shape.limit - RECORD_OVERHEAD
        if max(sizes, default=0) <= limit:
            return made
        for size, key, seq_id in zip(sizes, made.keys, made.seq_ids, strict=True):
            if size > limit:
                self._park(key, size + RECORD_OVERHEAD, seq_id)
        return made.only([size <= limit for size in sizes])

    def _park(self, key: bytes, size: int, seq_id: int) -> None:
        topic = self._route.topic if self._route else ""
        op = replace(self._op, seq_id=seq_id)
        shape = self._shape
        large = TooLarge(op, key, size, topic, shape.limit, shape.advice)
        parking = self._target.parking
        aside = self._target.topics.get(parking)
        if aside is None or self._sender is None or large.size_parked > aside.limit:
            raise large.refusal()
        (partition,) = self._partitions([key], aside.partitions)
        self._sender.send_aside(parking, large.document(), key, partition)
        self.tally.parked[op.table.full_name] += 1
        large.tell(self._target.outgoing.sink, parking)

    @property
    def losses(self) -> dict[str, ColumnLosses]:
        """What had no form, by table."""
        encoders = [(self._chunk.relation.table, self._encoder)]
        if self._handled is not None:
            encoders = list(self._handled.encoders)
        found = {table.full_name: _losses(encoder) for table, encoder in encoders}
        return {name: losses for name, losses in found.items() if losses}

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


def _losses(encoder: Encoder) -> ColumnLosses:
    """Return what an encoder counts; those of other formats lose nothing."""
    columns = getattr(encoder, "columns", None)
    if columns is None or not isinstance(encoder, RecordEncoder):
        return ColumnLosses()
    return ColumnLosses(columns.left_out, dict(columns.lost))
