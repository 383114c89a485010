"""A server, a stream of it and a topic, moved one step at a time: a table's old rows.

A transaction takes its number, writes under row locks, stands in the WAL, and is seen
by others: four moments. The stream reads behind; a crash takes it back to a position
that was stored, and the topic keeps what it had by then, or some more.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

from walstream.op import Kind, ReplicationOp, Table, halves
from walstream.pipeline.ledger import Shares, Transaction
from walstream.row import OMITTED, UNCHANGED, Value
from walstream.sources.postgres.incremental.chunk import (
    Key,
    KeyChunk,
    Visibility,
)
from walstream.sources.postgres.incremental.progress import IncrementalProgress
from walstream.sources.postgres.incremental.queue import IncrementalBackfill
from walstream.sources.postgres.incremental.table_run import LIMITS, ChunkLimits
from walstream.sources.postgres.incremental.threads import Submit
from walstream.testing import MemoryStore

NAME: Final = "public.t"
TABLE: Final = Table("public", "t", ("id", "n", "big"), key=(0,))
KEYS: Final = tuple("abcdef")
PARTITIONS: Final = 2

Row = tuple[str, str]  # n, big


@dataclass
class Writer:
    """One transaction."""

    xid: int
    truncated: bool = False
    rows: dict[str, Row | None] = field(default_factory=dict)
    ops: list[ReplicationOp] = field(default_factory=list)  # that are published
    logged: bool = False


@dataclass
class Commit:
    lsn: int
    end: int
    ops: list[ReplicationOp]


class Server:
    """One table, its transactions and its WAL."""

    def __init__(self, *, published: bool) -> None:
        self.published = published
        self.rows: dict[str, Row] = {}  # that a new snapshot sees
        self.running: list[Writer] = []
        self.wal: list[Commit] = []
        self.lsn = 1000
        self._next_xid = (1 << 32) - 4  # the stream's 32 bits run over
        self._completed = self._next_xid - 1  # the highest that has ended
        self._values = 0

    def fill(self, keys: Iterable[str]) -> None:
        """Have rows that were there before all."""
        self.rows.update((key, (f"{key}0", f"{key}1")) for key in keys)

    def begin(self) -> None:
        self.running.append(Writer(self._next_xid))
        self._next_xid += 1

    def seen(self) -> Visibility:
        """Give a snapshot: of what runs above all that ended it says nothing."""
        xmax = self._completed + 1
        return Visibility(xmax, [one.xid for one in self.running if one.xid < xmax])

    def pass_by(self) -> int:
        """Begin and end a transaction of its own; give its number."""
        self._completed = self._next_xid
        self._next_xid += 1
        return self._completed

    def write(self, number: int, kind: int, key: str, other: str) -> None:
        """Let one of those that are open write, unless it had to wait for a lock."""
        open_ones = [writer for writer in self.running if not writer.logged]
        if not open_ones:
            return
        writer = open_ones[number % len(open_ones)]
        others = [one for one in self.running if one is not writer]
        if any(one.truncated for one in others):
            return
        locked = {key for one in others for key in one.rows}
        if kind == 5:
            if not locked:
                writer.rows, writer.truncated = {}, True
                self._add(writer, Kind.TRUNCATE)
        elif key not in locked:
            self._write_row(writer, kind, key, None if other in locked else other)

    def _write_row(
        self, writer: Writer, kind: int, key: str, other: str | None
    ) -> None:
        row = self._view(writer, key)
        self._values += 1
        fresh = str(self._values)
        if row is None:
            writer.rows[key] = (fresh, fresh)
            self._add(writer, Kind.INSERT, new=[key, fresh, fresh])
        elif kind == 1:
            writer.rows[key] = None
            self._add(writer, Kind.DELETE, old=[key, OMITTED, OMITTED])
        elif kind == 2:
            writer.rows[key] = (row[0], fresh)
            self._add(writer, Kind.UPDATE, new=[key, row[0], fresh])
        elif kind == 3 and other is not None and self._view(writer, other) is None:
            writer.rows[key], writer.rows[other] = None, (fresh, row[1])
            old: list[Value] = [key, OMITTED, OMITTED]
            self._add(writer, Kind.UPDATE, old=old, new=[other, fresh, row[1]])
        else:
            writer.rows[key] = (fresh, row[1])
            self._add(writer, Kind.UPDATE, new=[key, fresh, UNCHANGED])

    def _view(self, writer: Writer, key: str) -> Row | None:
        if key in writer.rows:
            return writer.rows[key]
        return None if writer.truncated else self.rows.get(key)

    def _add(
        self,
        writer: Writer,
        kind: Kind,
        old: list[Value] | None = None,
        new: list[Value] | None = None,
    ) -> None:
        if not self.published:
            return
        taken = sum(2 if op.key_changed else 1 for op in writer.ops)
        op = ReplicationOp(kind, TABLE, 0, taken, old, new)
        op.xid = writer.xid % (1 << 32)
        op.absent = OMITTED in (old or ()) or UNCHANGED in (new or ())
        op.key_changed = kind is Kind.UPDATE and old is not None
        writer.ops.append(op)

    def log(self, number: int) -> None:
        """Write a commit record: the stream may read it, nobody else sees it yet."""
        open_ones = [writer for writer in self.running if not writer.logged]
        if open_ones:
            writer = open_ones[number % len(open_ones)]
            writer.logged = True
            self.lsn += 3
            for op in writer.ops:
                op.lsn = self.lsn
            self.wal.append(Commit(self.lsn, self.lsn + 48, writer.ops))
            self.lsn += 48

    def show_logged(self, number: int) -> None:
        """Let others see one that is in the WAL."""
        logged = [writer for writer in self.running if writer.logged]
        if not logged:
            return
        writer = logged[number % len(logged)]
        self.running.remove(writer)
        self._completed = max(self._completed, writer.xid)
        if writer.truncated:
            self.rows.clear()
        for key, row in writer.rows.items():
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = row

    def roll_back(self, number: int) -> None:
        open_ones = [writer for writer in self.running if not writer.logged]
        if open_ones:
            writer = open_ones[number % len(open_ones)]
            self.running.remove(writer)
            self._completed = max(self._completed, writer.xid)


class ServerReader:
    """Reads the model's table, two rows at a time."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def mark(self) -> int:
        return self._server.pass_by()

    def seen(self, later_s: float) -> Visibility:
        del later_s
        return self._server.seen()

    def blockers(self) -> str:
        return ""

    def table(self, name: str) -> tuple[Table, int]:
        del name
        high = self._server.lsn
        self._server.lsn += 30
        return TABLE, high

    def read(
        self, name: str, after: Key | None, key: object, most: int, where: str = ""
    ) -> KeyChunk:
        del where
        del name, key, most
        rows = [
            [at, *row]
            for at, row in sorted(self._server.rows.items())
            if after is None or at > after[0]
        ]
        high = self._server.lsn
        seen = self._server.seen()
        self._server.pass_by()
        self._server.lsn += 30  # what brings the stream by
        return KeyChunk(
            TABLE, list(map(list, rows[:2])), (0,), seen, high, len(rows) <= 2
        )


@dataclass(frozen=True)
class Message:
    """One record of the topic."""

    op: ReplicationOp
    key: str  # "": a Truncate

    @property
    def place(self) -> tuple[int, int]:
        return self.op.lsn, self.op.seq_id


@dataclass(frozen=True)
class Steps:
    """Threads that run when a test says so."""

    read: Submit
    write: Submit


class Stream:
    """The pipeline, in steps; what it leaves in the topic outlives it."""

    def __init__(
        self,
        server: Server,
        positions: MemoryStore,
        limits: ChunkLimits = LIMITS,
    ) -> None:
        self.server = server
        self.limits = limits
        self.positions = positions
        self.topic: list[list[Message]] = [[] for _ in range(PARTITIONS)]
        self._delivered = [0] * PARTITIONS  # records of each partition
        self.stored = [server.lsn]  # positions
        self.progress = IncrementalProgress(positions)
        self._start(server.lsn)

    def go_on_behind(self, topic: list[list[Message]]) -> None:
        """Write behind what a topic holds already."""
        self.topic = topic
        self._delivered = list(map(len, topic))

    def _start(self, place: int) -> None:
        self._place = place
        self._next = sum(commit.lsn < place for commit in self.server.wal)
        self._tasks: list[Callable[[], None]] = []
        self._pending: list[tuple[Transaction, int, list[int]]] = []
        self.progress = IncrementalProgress(self.positions)
        threads = Steps(self._submit, self._submit)
        self.backfill = IncrementalBackfill(
            ServerReader(self.server),
            self.progress,
            threads,
            lambda: None,
            limits=self.limits,
        )

    def _submit(self, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(task(*arguments))
            except Exception as error:  # noqa: BLE001 - the future tells
                future.set_exception(error)

        self._tasks.append(run)
        return future

    def run_task(self) -> None:
        if self._tasks:
            self._tasks.pop(0)()

    def read(self) -> None:
        """Process the next transaction, or hear how far the server is."""
        if self._next < len(self.server.wal):
            commit = self.server.wal[self._next]
            self._next += 1
            for op in commit.ops:
                if self.backfill.note is not None:
                    self.backfill.note(op)
                self._send(op)
            self._place = max(self._place, commit.end)
        else:
            self._place = self.server.lsn
        self._sent(Transaction(self._place))
        self._let_in()

    def _let_in(self) -> None:
        ops = self.backfill.rows(self._place, lambda _: True)
        for op in ops:
            self._send(op)
        if ops:
            transaction = Transaction(self._place - 1)
            self._sent(transaction)
            self.backfill.sent(Shares([transaction]))

    def _send(self, op: ReplicationOp) -> None:
        for half in halves(op) if op.key_changed else (op,):
            row = half.new if half.new is not None else half.old
            if row is None:
                for partition in self.topic:
                    partition.append(Message(half, ""))
            else:
                key = str(row[0])
                self.topic[ord(key) % PARTITIONS].append(Message(half, key))

    def _sent(self, transaction: Transaction) -> None:
        transaction.end_lsn = self._place
        transaction.undelivered = 1
        self._pending.append((transaction, self._place, list(map(len, self.topic))))

    def deliver(self) -> None:
        """Deliver the oldest transaction that is not, and store the position."""
        if self._pending:
            transaction, place, lengths = self._pending.pop(0)
            transaction.undelivered = 0
            self._delivered = lengths
            self.stored.append(place)

    def crash(self, back: int, more: int) -> None:
        """Begin again from a position that was stored; Kafka may hold more."""
        for number, partition in enumerate(self.topic):
            left = len(partition) - self._delivered[number]
            keep = self._delivered[number] + (more * (number + 1)) % (left + 1)
            del partition[keep:]
        self._delivered = list(map(len, self.topic))
        place = self.stored[max(0, len(self.stored) - 1 - back)]
        self.stored = [one for one in self.stored if one <= place]
        self._start(place)

    def finish(self) -> None:
        """End all transactions, and stream until nothing is left to do."""
        while self.server.running:
            self.server.log(0)
            self.server.show_logged(0)
        for _ in range(1000):
            if not self.progress.wishes() and self._next == len(self.server.wal):
                return
            assert not any(w.error for w in self.progress.wishes().values())
            self.read()
            self.run_task()
            self.deliver()
        raise AssertionError("the backfill does not end")


Folded = dict[str, list[Value]]


def _apply(rows: Folded, op: ReplicationOp, key: str) -> None:
    if op.kind is Kind.DELETE:
        rows.pop(key, None)
    elif op.kind is Kind.INSERT:
        rows[key] = list(op.new or ())
    elif op.kind is Kind.UPDATE:
        before = rows.get(key, [key, UNCHANGED, UNCHANGED])
        rows[key] = [
            old if value is UNCHANGED else value
            for value, old in zip(op.new or (), before, strict=True)
        ]


def _partition_of(key: str) -> int:
    return ord(key) % PARTITIONS


def in_order(topic: list[list[Message]]) -> Folded:
    """Apply every record as it comes."""
    rows: Folded = {}
    for number, partition in enumerate(topic):
        for message in partition:
            if message.op.kind is Kind.TRUNCATE:
                for key in [k for k in rows if _partition_of(k) == number]:
                    del rows[key]
            else:
                _apply(rows, message.op, message.key)
    return rows


def once(topic: list[list[Message]]) -> Folded:
    """Apply as the idempotent consumer does: no op of the stream twice, or back."""
    effective: list[list[Message]] = []
    for partition in topic:
        position, chunks = (0, 0), dict[tuple[int, int], int]()
        taken = []
        for message in partition:
            if message.op.snapshot:
                chunk = message.op.lsn, message.op.seq_id >> 32
                index = message.op.seq_id & 0xFFFFFFFF
                if index <= chunks.get(chunk, -1):
                    continue
                chunks[chunk] = index
            elif message.place <= position:
                continue
            else:
                position = message.place
            taken.append(message)
        effective.append(taken)
    return in_order(effective)


def by_position(topic: list[list[Message]]) -> Folded:
    """Apply each key's records by (lsn, seq_id), wherever they stand."""
    by_place = [
        list({message.place: message for message in partition}.values())
        for partition in topic
    ]
    return in_order(
        [sorted(part, key=lambda message: message.place) for part in by_place]
    )
