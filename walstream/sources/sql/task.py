"""Task for a range of a polled table: read it, encode, send, wait for delivery.

Pickled into a worker of Spark with its reader and its sinks, or run `here`, which takes
a few rows no way round. As with a backfill's task, what it
raises Spark tries again and shows to people: it names the range's table and the cause,
never a value or a secret; what no retry can cure is returned instead. A row that a
topic refuses ends the range before it: what came before is delivered, and counts.
"""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Final

from walstream.config.librdkafka import ClientProperties
from walstream.errors import RecordRefused, Restart, Transient, WalstreamError
from walstream.formats.row import RowEncoder
from walstream.kafka.bulk_producer import NOT_TAKEN, Outgoing
from walstream.kafka.bulk_producer_pool import OF_THIS_PROCESS, BulkProducerPool
from walstream.kafka.size_dispute import settled
from walstream.records.oversize import widen
from walstream.records.partitioner import for_all
from walstream.records.record_size import RECORD_OVERHEAD
from walstream.sources.sql.intervals import Interval, missing
from walstream.sources.sql.row_form import JsonRows, RowForm, RowWriter
from walstream.sources.sql.table_reader import Block, TableReader
from walstream.spark.leash import Leash
from walstream.spark.outcome import ChunkDone, ChunkFailed, ChunkRefused
from walstream.telemetry import runtime

_AGAIN_S: Final = 1.0  # Spark tries again at once: too soon for what passes


@dataclass(frozen=True, slots=True)
class Ahead:
    """Rows above `low`, up to `high`, and no more than `limit`."""

    low: int
    high: int
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Late:
    """Rows of keys that were missing."""

    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """Range that one task reads."""

    number: int
    table: str  # as configured
    span: Ahead | Late
    rows: int | None = None  # about how many, at most; None: it may be any number

    @property
    def title(self) -> str:
        return self.table

    def __str__(self) -> str:
        if isinstance(self.span, Ahead):
            where = f"keys above {self.span.low}, to {self.span.high}"
        else:
            where = f"{len(self.span.keys)} keys that were missing"
        return f'chunk {self.number}: table "{self.table}", {where}'


@dataclass(frozen=True, slots=True)
class RangeDone(ChunkDone):
    """Result of a task; all its records are delivered."""

    reached: int = 0  # every row of the range up to this key is delivered
    missing: tuple[Interval, ...] = ()  # up to there
    keys: tuple[int, ...] = ()  # of those that were late
    refused: WalstreamError | None = None  # why it ends before the range does
    read_s: float = 0.0  # what of the time went into the database
    publish_s: float = 0.0  # and into Kafka


@dataclass(frozen=True, slots=True)
class RowTarget:
    """One sink, as a task needs it; picklable."""

    outgoing: Outgoing
    topic: str
    partitions: int
    limit: int  # bytes of a record
    partitioner: str
    advice: str = ""  # what takes a larger one; "": max.message.bytes
    form: RowForm | None = None  # with its schemas' ids; None: JSON


@dataclass(frozen=True, slots=True)
class PollTask:
    """Reads ranges of one table for all sinks of a source."""

    source: str  # as its records name it
    table: str  # likewise
    reader: TableReader
    targets: tuple[RowTarget, ...]
    leash: Leash | None = None  # where tasks run on the driver's machine
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    def __call__(self, part: Range) -> RangeDone | ChunkRefused:
        """Do one range; raise ChunkFailed when Spark should try again."""
        try:
            with ExitStack() as stack:
                check = _nothing
                if self.leash is not None:
                    stack.enter_context(self.leash.worn())
                    check = self.leash.check
                return _Attempt(self, part, check, OF_THIS_PROCESS).run()
        except WalstreamError as error:
            clean = settled(error, self._written()).cleaned(self.secrets)
            if isinstance(clean, Restart) or not clean.retryable:
                return ChunkRefused(part.number, clean)
            runtime.sleep(_AGAIN_S)
            raise ChunkFailed(f"{part}: {clean.args[0]}") from None
        except Exception as error:  # noqa: BLE001 - its words may hold values
            raise ChunkFailed(_where(part, error)) from None

    def here(
        self, part: Range, check: Callable[[], None], senders: BulkProducerPool
    ) -> RangeDone:
        """Do one range in this very process; `check` may end it."""
        try:
            return _Attempt(self, part, check, senders).run()
        except WalstreamError as error:
            raise settled(error, self._written()).cleaned(self.secrets) from None
        except Exception as error:  # noqa: BLE001 - likewise
            raise Transient(_where(part, error)) from None

    def _written(self) -> Iterator[tuple[ClientProperties, Mapping[str, int]]]:
        """Yield what is written with, and what its topic took as it was found."""
        for one in self.targets:
            yield one.outgoing.producer, {one.topic: one.limit}


def _where(part: Range, error: Exception) -> str:
    where = traceback.extract_tb(error.__traceback__)[-1]
    name = type(error).__name__
    return f"{part}: {name} in {where.name}, {where.filename}:{where.lineno}"


class _Attempt:
    """One try of one range."""

    def __init__(
        self,
        task: PollTask,
        part: Range,
        check: Callable[[], None],
        senders: BulkProducerPool,
    ) -> None:
        self._task = task
        self._part = part
        self._check = check
        self._senders = senders
        self._began = runtime.perf_counter()
        self._read_s = 0.0
        told = RowEncoder(task.source, task.table, task.reader.columns)
        plain = JsonRows(told)  # of all sinks in JSON
        self._writers = [
            plain if one.form is None else one.form.writer(told) for one in task.targets
        ]
        self._keys: list[int] = []
        self._bytes = 0
        self._refused: WalstreamError | None = None
        self._outlets: list[_Outlet] = []

    def run(self) -> RangeDone:
        try:
            for target, writer in zip(self._task.targets, self._writers, strict=True):
                made = _Outlet(target, writer, self._senders, self._check)
                self._outlets.append(made)
            for block in self._timed(self._blocks()):
                self._check()
                if not self._send(block):
                    break
            for outlet in self._outlets:
                outlet.sender.finish()
            for outlet in self._outlets:
                self._senders.give_back(outlet.target.outgoing, outlet.sender)
        except BaseException:
            for outlet in self._outlets:
                outlet.sender.abandon()
            raise
        return self._outcome()

    def _blocks(self) -> Iterator[Block]:
        span = self._part.span
        if isinstance(span, Ahead):
            return self._task.reader.ahead(span.low, span.high, span.limit)
        return self._task.reader.late(span.keys)

    def _timed(self, blocks: Iterator[Block]) -> Iterator[Block]:
        while True:
            began = runtime.perf_counter()
            block = next(blocks, None)
            self._read_s += runtime.perf_counter() - began
            if block is None:
                return
            yield block

    def _send(self, block: Block) -> bool:
        """Send rows; False: one of them was refused, and none after it was sent."""
        index = self._task.reader.key
        keys = [int(row[index]) for row in block]
        at = runtime.time()
        records = {one: one.write(block, keys, at) for one in set(self._writers)}
        sizes = {one: _sizes(*found) for one, found in records.items()}
        count = len(keys)
        for outlet in self._outlets:
            wide, room = sizes[outlet.writer], outlet.target.limit
            if max(wide[:count], default=0) > room:
                count = next(at for at, size in enumerate(wide) if size > room)
                self._refused = self._refuse(keys[count], wide[count], outlet.target)
        for outlet in self._outlets:
            values, key_texts = records[outlet.writer]
            outlet.send(values[:count], key_texts[:count])
            total = sum(sizes[outlet.writer][:count])
            self._bytes += total - count * RECORD_OVERHEAD
        self._keys += keys[:count]
        return self._refused is None

    def _refuse(self, key: int, size: int, narrow: RowTarget) -> RecordRefused:
        room = narrow.limit
        return RecordRefused(
            f"the row with key {key} of table {self._task.table!r} has {size} bytes,"
            f" topic {narrow.topic!r} takes {room}",
            hint=f"{widen(narrow.topic, narrow.advice)}: walstream continues by itself",
        )

    def _outcome(self) -> RangeDone:
        span, keys = self._part.span, self._keys
        done = RangeDone(
            number=self._part.number,
            rows=len(keys),
            bytes=self._bytes,
            refused=self._refused,
            read_s=self._read_s,
            publish_s=runtime.perf_counter() - self._began - self._read_s,
        )
        if isinstance(span, Late):
            return replace(done, keys=tuple(keys))
        cut = self._refused is not None or len(keys) == span.limit
        reached = (keys[-1] if keys else span.low) if cut else span.high
        gaps = missing(span.low, reached, keys)
        return replace(done, reached=reached, missing=tuple(gaps))


class _Outlet:
    """The records of one range for one sink."""

    def __init__(
        self,
        target: RowTarget,
        writer: RowWriter,
        senders: BulkProducerPool,
        check: Callable[[], None],
    ) -> None:
        self.target = target
        self.writer = writer
        self.sender = senders.take(target.outgoing, target.topic, check)
        self._partitions = for_all(target.partitioner)

    def send(self, values: Sequence[bytes], keys: Sequence[bytes]) -> None:
        target, sender = self.target, self.sender
        sender.serve(0)
        chosen = (
            self._partitions(keys, target.partitions)
            if target.partitions > 1
            else repeat(0)
        )
        produce, reports, topic = sender.produce, sender.reports, target.topic
        for value, key, partition in zip(values, keys, chosen):  # noqa: B905 - endless
            try:
                produce(topic, value, key, partition, reports[partition])
            except NOT_TAKEN:
                sender.send(topic, value, key, partition)
        sender.sent += len(values)


def _sizes(values: Sequence[bytes], keys: Sequence[bytes]) -> list[int]:
    return [
        len(value) + len(key) + RECORD_OVERHEAD
        for value, key in zip(values, keys, strict=True)
    ]


def _nothing() -> None:
    """Do not check: on a cluster, Spark ends the tasks of a driver that is gone."""
