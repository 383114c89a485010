"""A PostgreSQL as walstream sees it: WAL, one slot's walsender, sessions, crashes."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final

import psycopg

from tests.simulation.tables import ShapeVersion, SimTable, WalTransaction, Writer
from tests.simulation.world import Process, World
from walstream.errors import Transient
from walstream.lsn import Lsn, parse, show
from walstream.op import Table, postgres_time
from walstream.pipeline.pgoutput import LogicalMessage
from walstream.postgres.server import Server
from walstream.postgres.slot import Slot
from walstream.postgres.slot_health import SlotHealth
from walstream.sources.postgres.incremental.chunk import Key, KeyChunk, Visibility
from walstream.testing import encode, keepalive, wal_data

START: Final = 0x1_0000_0000
_STATUS: Final = Struct("!cQQQqB").unpack
_IDENTIFIER: Final = 7
_CHUNK: Final = 2  # rows


@dataclass
class SimSlot:
    """A slot in memory, and its copy on disk, which a crash goes back to."""

    name: str
    confirmed: Lsn
    on_disk: Lsn
    reader: "SimWalsender | None" = None


@dataclass(eq=False)
class SimWalsender:
    """A replication connection, as psycopg's `pgconn`."""

    server: "SimServer"
    slot: SimSlot | None = None
    owner: Process | None = None
    start: Lsn = 0
    messages: bool = False
    sent: Lsn = 0  # all that committed below was sent
    described: dict[int, ShapeVersion] = field(default_factory=dict)
    inbox: deque[bytes] = field(default_factory=deque)
    cut: bool = False
    ended: bool = False  # by the client's wish
    nonblocking: int = 0
    ssl_in_use: bool = False
    socket: int = 0
    _next: int = 0  # transaction to be decoded
    _arrives: float = 0.0
    _heard: float = 0.0

    def __post_init__(self) -> None:
        self.socket = self.server.world.descriptor(
            lambda: self.cut or self.ended or bool(self.inbox)
        )
        self.pgconn = self

    # as psycopg's Connection

    def add_notice_handler(self, _hear: Callable[..., None]) -> None:
        pass

    def execute(self, command: str | bytes) -> "SimWalsender":
        self.server.world.port("replication command")
        text = command.decode() if isinstance(command, bytes) else command
        if text.startswith("START_REPLICATION"):
            self._begin(text)
        return self

    def fetchone(self) -> tuple[Any, ...]:
        server = self.server
        return str(_IDENTIFIER), server.timeline, show(server.wal_end), "app"

    def _begin(self, text: str) -> None:
        words = text.split()
        slot = self.server.slots.get(words[2].strip('"'))
        if slot is None:
            raise psycopg.errors.UndefinedObject("replication slot does not exist")
        if slot.reader is not None:
            raise psycopg.errors.ObjectInUse("replication slot is active")
        slot.reader = self
        self.slot = slot
        self.messages = "messages" in text
        self.start = self.sent = max(parse(words[4]), slot.confirmed)
        self._next = bisect_left(self.server.commits, self.start)
        self.server.world.at(self._latency(), self.decode)

    def close(self) -> None:
        if not self.cut:
            self.cut = True  # what was sent to the server may be lost
            self.let_go()

    def let_go(self) -> None:
        if self.slot is not None and self.slot.reader is self:
            self.slot.reader = None

    # as the walsender

    def _latency(self) -> float:
        return self.server.world.random.choice((0.0001, 0.001, 0.001, 0.02))

    def decode(self) -> None:
        """Decode what is committed, and send it in pieces."""
        server = self.server
        while not self.cut and self._next < len(server.wal):
            item = server.wal[self._next]
            self._next += 1
            if isinstance(item, WalTransaction):
                for frame in self._decoded(item):
                    self._send(frame)
                self.sent = max(self.sent, item.end_lsn)
            elif self.messages:
                self._send(wal_data(encode(item), item.lsn))

    def _decoded(self, transaction: WalTransaction) -> Iterator[bytes]:
        if not transaction.frames and self.server.world.random.random() < 0.5:
            return  # an empty one may be left out
        yield transaction.head
        for shapes, frame in transaction.frames:
            for table, shape in shapes:
                if self.described.get(table.oid) != shape:
                    self.described[table.oid] = shape
                    yield wal_data(encode(table.relation(shape)), 0)
            yield frame
            if self.server.world.random.random() < 0.02:
                yield keepalive(transaction.lsn, reply=False)
        yield transaction.tail

    def _send(self, frame: bytes) -> None:
        world = self.server.world
        self._arrives = max(self._arrives, world.now)
        if world.random.random() < 0.2:
            self._arrives += self._latency()
        world.at(self._arrives - world.now, lambda: self._arrive(frame))

    def _arrive(self, frame: bytes) -> None:
        if not self.cut:
            self.inbox.append(frame)

    def keepalive(self, *, reply: bool = False) -> None:
        """Tell how far the WAL is decoded."""
        if not self.cut and self.slot is not None:
            self.decode()
            self.sent = max(self.sent, self.server.wal_end)
            self.server.keepalives.add(self.sent)
            self._send(keepalive(self.sent, reply=reply))

    # as libpq

    def get_copy_data(self, _asynchronous: int) -> tuple[int, bytes]:
        if self.inbox:
            frame = self.inbox.popleft()
            return len(frame), frame
        if self.cut:
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return (-1 if self.ended else 0), b""

    def consume_input(self) -> None:
        self.server.world.port("read")

    def put_copy_data(self, status: bytes) -> None:
        world = self.server.world
        world.port("status")
        if self.cut:
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        _, _, flush, _, _, reply = _STATUS(status)
        self._in_turn(lambda: self._hear(flush, bool(reply)))
        world.port("status sent")

    def _in_turn(self, act: Callable[[], None]) -> None:
        """Let the server hear of it, behind what it was told before."""
        world = self.server.world
        self._heard = max(self._heard, world.now) + self._latency()
        world.at(self._heard - world.now, act)

    def _hear(self, flush: Lsn, reply: bool) -> None:
        if self.cut or self.ended or self.slot is None:
            return
        if flush:
            self.server.confirm(self.slot, flush)
        if reply:
            self.keepalive()

    def flush(self) -> int:
        return 0

    def put_copy_end(self) -> None:
        self._in_turn(self._end)

    def _end(self) -> None:
        self.ended = True
        self.let_go()

    def get_result(self) -> None:
        return None


class SimServer:
    """Tables, WAL and slots, and what is told of them over sessions."""

    def __init__(self, world: World, tables: list[SimTable]) -> None:
        self.world = world
        self.tables = tables
        self.timeline = 1
        self.wal: list[WalTransaction | LogicalMessage] = []
        self.commits: list[Lsn] = []  # of `wal`
        self.wal_end: Lsn = START
        self.slots: dict[str, SimSlot] = {}
        self.keepalives: set[Lsn] = set()
        self.down_until = 0.0
        self.committed: Callable[[WalTransaction], None] = lambda _transaction: None
        self.confirming: Callable[[SimSlot, Lsn], None] = lambda _slot, _lsn: None
        self._next_xid = 700
        self.running: list[int] = []  # numbers of transactions that are open
        self._logged: deque[WalTransaction] = deque()  # that others do not see yet
        self._completed = 699  # the highest number of what has ended
        self.held_until = 0.0  # a standby keeps commits from being seen

    # what its users do

    def commit(self, seed: int) -> WalTransaction:
        xid = (
            self.running.pop(seed % len(self.running)) if self.running else self.begin()
        )
        if xid in self.running:
            self.running.remove(xid)
        now = postgres_time(self.world.wall + self.world.now)
        done = Writer(self.tables, self.wal_end, seed).write(xid, now)
        self.wal.append(done)
        self.commits.append(done.lsn)
        self.wal_end = done.end_lsn
        self.world.note(f"commit {done.lsn:X} {len(done.expected)}")
        self.committed(done)
        self._wake()
        self._logged.append(done)
        self._show()
        return done

    def begin(self) -> int:
        """Begin a transaction, which stays open."""
        xid = self._next_xid
        self._next_xid += 1
        self.running.append(xid)
        return xid

    def roll_back(self) -> None:
        """End all that are open."""
        self._completed = max([self._completed, *self.running])
        self.running.clear()

    def _show(self) -> None:
        """Let others see what is logged, in its order, unless a standby is waited for."""
        if self.world.now < self.held_until:
            self.world.at(self.held_until - self.world.now, self._show)
            return
        while self._logged:
            done = self._logged.popleft()
            done.show()
            self._completed = max(self._completed, done.xid)

    def snapshot(self) -> Visibility:
        xmax = self._completed + 1
        open_ones = [*self.running, *(done.xid for done in self._logged)]
        return Visibility(xmax, [xid for xid in open_ones if xid < xmax])

    def pass_by(self) -> int:
        """Begin and end a transaction of its own; give its number."""
        self._completed = self._next_xid
        self._next_xid += 1
        return self._completed

    def say(self) -> None:
        """Write a logical message outside of a transaction."""
        message = LogicalMessage(
            transactional=False, lsn=self.wal_end + 8, prefix="p", content=b"alone"
        )
        self.wal.append(message)
        self.commits.append(message.lsn)
        self.wal_end += 64
        self._wake()

    def grow(self) -> None:
        """Write WAL of which the slot has nothing."""
        self.wal_end += 512
        for sender in self.readers():
            sender.keepalive(reply=self.world.random.random() < 0.3)

    def _wake(self) -> None:
        for sender in self.readers():
            self.world.at(0.0, sender.decode)

    def readers(self) -> list[SimWalsender]:
        return [slot.reader for slot in self.slots.values() if slot.reader is not None]

    def confirm(self, slot: SimSlot, lsn: Lsn) -> None:
        self.world.note(f"confirmed {slot.name} {lsn:X}")
        self.confirming(slot, lsn)
        slot.confirmed = max(slot.confirmed, lsn)

    def checkpoint(self) -> None:
        for slot in self.slots.values():
            slot.on_disk = slot.confirmed

    def cut(self, owner: Process | None = None) -> None:
        """Lose every connection, or those of a process."""
        for sender in self.readers():
            if owner is not None and sender.owner is not owner:
                continue
            sender.cut = True
            self.world.at(self.world.random.choice((0.0, 0.5)), sender.let_go)

    def crash(self) -> None:
        """Lose what is in memory alone; committed transactions are on disk."""
        for slot in self.slots.values():
            if slot.reader is not None:
                slot.reader.cut = True
                slot.reader = None
            slot.confirmed = slot.on_disk
        self.down_until = self.world.now + self.world.random.choice((0.1, 2.0))

    # over sessions

    def connect(self, _dsn: str, *, replication: bool = False) -> SimWalsender:
        self.world.port("connect")
        if self.world.now < self.down_until:
            raise Transient("connecting to PostgreSQL: it is away")
        return SimWalsender(self, owner=self.world.owner)

    def readable(self, descriptor: int, timeout_s: float) -> bool:
        """Wait for the server's bytes."""
        return self.world.wait(self.world.descriptors[descriptor], timeout_s)

    @contextmanager
    def session(self, dsn: str) -> Iterator[SimWalsender]:
        yield self.connect(dsn)

    def look(self, _connection: object) -> Server:
        return Server(
            system_identifier=_IDENTIFIER,
            timeline=self.timeline,
            database="app",
            in_recovery=False,
            wal_level="logical",
            encoding="UTF8",
            wal_sender_timeout_ms=60_000,
            may_replicate=True,
            flush_lsn=self.wal_end,
            version=180000,
        )

    def facts(
        self, _connection: object, *_only: object, oid: int | None = None
    ) -> dict[str, Any]:
        found = [one for one in self.tables if oid in {None, one.oid}]
        return {one.full_name: one.facts() for one in found}

    def facts_and_end(
        self, connection: object, *, oid: int | None = None
    ) -> tuple[dict[str, Any], Lsn]:
        return self.facts(connection, oid=oid), self.wal_end

    def find(self, _connection: object, name: str) -> Slot | None:
        slot = self.slots.get(name)
        if slot is None:
            return None
        return Slot(
            name=name,
            kind="logical",
            plugin="pgoutput",
            database="app",
            active_pid=1 if slot.reader is not None else None,
            wal_status="reserved",
            invalidation=None,
            confirmed_flush_lsn=slot.confirmed,
            reader="another" if slot.reader is not None else "",
        )

    def health(self, _connection: object, name: str) -> SlotHealth | None:
        return (
            SlotHealth(0, "reserved", None, self.wal_end)
            if name in self.slots
            else None
        )

    def create(self, _dsn: str, wish: Any, _patience: object) -> Any:
        self.world.port("create slot")
        self.slots[wish.name] = SimSlot(wish.name, self.wal_end, self.wal_end)
        self.world.port("slot created")
        return Created(self.wal_end)

    def drop(self, _connection: object, name: str) -> None:
        self.world.port("drop slot")
        slot = self.slots.get(name)
        if slot is not None and slot.reader is not None:
            raise Transient(f"slot {name!r} is in use")
        self.slots.pop(name, None)
        self.world.note(f"slot {name} dropped")

    def copy(self, _connection: object, name: str, to: str) -> None:
        self.world.port("copy slot")
        slot = self.slots.get(name)
        if slot is None:
            raise Transient(f"slot {name!r} is gone")
        self.slots[to] = SimSlot(to, slot.confirmed, slot.confirmed)
        self.world.note(f"slot {to} copied")

    def toasted(
        self, _dsn: str, oid: int, _op: object, key: dict[str, Any], wanted: list[str]
    ) -> Any:
        (table,) = (one for one in self.tables if one.oid == oid)
        row = table.rows.get(key["id"])
        return None if row is None else tuple(row.get(name) for name in wanted)


@dataclass
class SimReader:
    """Reads a table beside the stream, some rows at a time, as others see it then."""

    server: SimServer

    def mark(self) -> int:
        self.server.world.port("mark")
        return self.server.pass_by()

    def seen(self, later_s: float) -> Visibility:
        self.server.world.sleep(later_s)
        return self.server.snapshot()

    def blockers(self) -> str:
        return ""

    def table(self, name: str) -> tuple[Table, Lsn]:
        self.server.connect("")
        high = self.server.wal_end
        self.server.grow()
        return self._find(name)[0], high

    def _find(self, name: str) -> tuple[Table, SimTable]:
        (found,) = (one for one in self.server.tables if one.full_name == name)
        columns = found.seen_shape.columns
        oids = tuple(20 if column == "id" else 25 for column in columns)
        table = Table("public", found.name, columns, (0,), oids, oid=found.oid)
        return table, found

    def read(
        self,
        name: str,
        after: Key | None,
        key: Sequence[str],
        most: int,
        where: str = "",
    ) -> KeyChunk:
        del where
        server = self.server
        server.connect("")
        most = min(most, _CHUNK)
        table, found = self._find(name)
        start = after[0] if after is not None and tuple(key) == ("id",) else ""
        keys = sorted(one for one in found.seen if one > start)[:most]
        rows = [[found.seen[one].get(name) for name in table.columns] for one in keys]
        chunk = KeyChunk(
            table,
            rows,
            (0,),
            server.snapshot(),
            server.wal_end,
            len(rows) < most,
            100,
            postgres_time(server.world.wall + server.world.now),
        )
        server.grow()
        return chunk


@dataclass
class Created:
    """A slot that was just created."""

    consistent_point: Lsn

    @property
    def connection(self) -> "Created":
        return self

    def close(self) -> None:
        pass
