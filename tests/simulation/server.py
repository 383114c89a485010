"""A PostgreSQL as walstream sees it: WAL, slots, sessions, crashes."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from tests.simulation.tables import SimTable, WalTransaction, Writer
from tests.simulation.walsender import IDENTIFIER, SimSlot, SimWalsender
from tests.simulation.world import Process, World
from walstream.errors import Transient
from walstream.lsn import Lsn, show
from walstream.op import postgres_time
from walstream.pipeline.pgoutput import LogicalMessage
from walstream.postgres.server import Server
from walstream.postgres.slot import Slot
from walstream.postgres.slot_health import SlotHealth
from walstream.sources.postgres.incremental.chunk import Visibility

START: Final = 0x1_0000_0000
_CHECKPOINT: Final = 0x80  # bytes of the record that begins a timeline


class SimServer:
    """Tables, WAL and slots, and what is told of them over sessions."""

    def __init__(self, world: World, tables: list[SimTable]) -> None:
        self.world = world
        self.tables = tables
        self.timeline = 1
        self.history = ""  # of the timelines before
        self._first = [(one, dict(one.rows), one.shape) for one in tables]
        self.wal: list[WalTransaction | LogicalMessage] = []
        self.commits: list[Lsn] = []  # of `wal`
        self.wal_end: Lsn = START
        self.slots: dict[str, SimSlot] = {}
        self.keepalives: set[Lsn] = set()
        self.down_until = 0.0
        self.lost: Callable[[Lsn], None] = lambda _lsn: None
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
        """Let others see what is logged, in order, unless a standby is waited for."""
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

    def fall_silent(self) -> None:
        """Lose what is between here and each reader; the connections stay open."""
        for sender in self.readers():
            sender.silent = True
            self.world.at(90.0, sender.let_go)  # wal_sender_timeout, and more

    def crash(self) -> None:
        """Lose what is in memory alone; committed transactions are on disk."""
        for slot in self.slots.values():
            if slot.reader is not None:
                slot.reader.cut = True
                slot.reader = None
            slot.confirmed = slot.on_disk
        self.down_until = self.world.now + self.world.random.choice((0.1, 2.0))

    def promote(self) -> None:
        """Fail over to a standby that has the slots, and lacks the last commits."""
        confirmed = max((one.confirmed for one in self.slots.values()), default=START)
        first = bisect_left(self.commits, max(confirmed, START))
        at = self.world.random.randint(first, len(self.commits))
        left = self.commits[at] if at < len(self.commits) else self.wal_end
        del self.wal[at:], self.commits[at:]
        states = self._first
        for item in self.wal:
            if isinstance(item, WalTransaction):
                states = item.states
        for table, rows, shape in states:
            table.rows, table.seen = dict(rows), dict(rows)
            table.shape = table.seen_shape = shape
        self._logged.clear()
        self.roll_back()
        self.wal_end = left + _CHECKPOINT
        self.history += f"{self.timeline}\t{show(left)}\tno recovery target\n"
        self.timeline += 1
        self.keepalives = {one for one in self.keepalives if one <= left}
        self.world.note(f"promoted at {left:X}")
        self.lost(left)
        for sender in self.readers():
            sender.cut = True
            sender.let_go()
        self.down_until = self.world.now + 1.0

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
            system_identifier=IDENTIFIER,
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
class Created:
    """A slot that was just created."""

    consistent_point: Lsn

    @property
    def connection(self) -> "Created":
        return self

    def close(self) -> None:
        pass
