"""A walsender of the simulated server, as libpq shows it."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

import psycopg

from tests.simulation.tables import ShapeVersion, SimTable, WalTransaction
from tests.simulation.world import Process
from walstream.lsn import Lsn, parse, show
from walstream.pipeline.pgoutput import LogicalMessage
from walstream.testing import encode, keepalive, wal_data

if TYPE_CHECKING:
    from tests.simulation.server import SimServer

IDENTIFIER: Final = 7
_LATENCIES: Final = (0.0001, 0.001, 0.001, 0.02)  # seconds
_STATUS: Final = Struct("!cQQQqB").unpack


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
    skips: bool = False  # what the slot is confirmed beyond where it was to begin
    messages: bool = False
    sent: Lsn = 0  # all that committed below was sent
    described: dict[int, ShapeVersion] = field(default_factory=dict)
    inbox: deque[bytes] = field(default_factory=deque)
    cut: bool = False
    silent: bool = False  # nothing arrives any more, and nobody is told
    ended: bool = False  # by the client's wish
    nonblocking: int = 0
    ssl_in_use: bool = False
    socket: int = 0
    _version: int = 0  # of the catalog
    _asked: str = ""
    _next: int = 0  # transaction to be decoded
    _arrives: float = 0.0
    _under_way: deque[tuple[float, list[bytes]]] = field(default_factory=deque)
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
        self._asked = text
        if text.startswith("START_REPLICATION"):
            self._begin(text)
        return self

    def fetchone(self) -> tuple[Any, ...]:
        server = self.server
        if self._asked.startswith("TIMELINE_HISTORY"):
            return "history", server.history.encode()
        return str(IDENTIFIER), server.timeline, show(server.wal_end), "app"

    def _begin(self, text: str) -> None:
        words = text.split()
        slot = self.server.slots.get(words[2].strip('"'))
        if slot is None:
            raise psycopg.errors.UndefinedObject("replication slot does not exist")
        if slot.reader is not None:
            raise psycopg.errors.ObjectInUse("replication slot is active")
        slot.reader = self
        self.slot = slot
        if self.owner is not None:
            self.owner.reads_since = self.server.world.now
        self.messages = "messages" in text
        self.start = self.sent = max(parse(words[4]), slot.confirmed)
        self.skips = self.start > parse(words[4])
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
        return _LATENCIES[int(self.server.world.random.random() * len(_LATENCIES))]

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
            elif isinstance(item, LogicalMessage) and self.messages:
                self._send(wal_data(encode(item), item.lsn))

    def _decoded(self, transaction: WalTransaction) -> Iterator[bytes]:
        frames = transaction.frames
        if (
            not any(shapes or self.messages for shapes, _ in frames)
            and self.server.world.random.random() < 0.5
        ):
            self.forget(transaction)
            return  # an empty one may be left out, what it altered is not
        if transaction.version != self._version:  # a publication was altered
            self._version = transaction.version
            self.described.clear()
        yield transaction.head
        for index, (shapes, frame) in enumerate(frames):
            self._forget(transaction.voided.get(index, ()))
            if not (shapes or self.messages):
                continue
            for table, shape in shapes:
                if self.described.get(table.oid) != shape:
                    self.described[table.oid] = shape
                    if above := transaction.above.get(index):
                        root, of_root = above
                        yield wal_data(encode(root.relation(of_root)), 0)
                    yield wal_data(encode(table.relation(shape)), 0)
            yield frame
            if self.server.world.random.random() < 0.02:
                yield keepalive(transaction.lsn, reply=False)
        self.forget(transaction)
        yield transaction.tail

    def forget(self, transaction: WalTransaction) -> None:
        """Describe tables anew that a transaction altered."""
        for tables in transaction.voided.values():
            self._forget(tables)

    def _forget(self, tables: Iterable[SimTable]) -> None:
        for table in tables:
            self.described.pop(table.oid, None)

    def _send(self, frame: bytes) -> None:
        world = self.server.world
        self._arrives = max(self._arrives, world.now)
        if world.random.random() < 0.2:
            self._arrives += self._latency()
        if self._under_way and self._under_way[-1][0] == self._arrives:
            self._under_way[-1][1].append(frame)
            return
        self._under_way.append((self._arrives, [frame]))
        world.at(self._arrives - world.now, self._arrive)

    def _arrive(self) -> None:
        """Have what was sent together arrive together."""
        _, frames = self._under_way.popleft()
        if not (self.cut or self.silent):
            self.inbox.extend(frames)

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
        if self.silent:
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
