"""A PostgreSQL as walstream sees it: WAL, slots, sessions, crashes."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from tests.simulation.answers import Answers
from tests.simulation.catalog import SimCatalog
from tests.simulation.publishing import PublishedWriter
from tests.simulation.session import SimSession
from tests.simulation.tables import (
    CatalogChange,
    SimTable,
    WalTransaction,
    Writer,
)
from tests.simulation.walsender import SimSlot, SimWalsender
from tests.simulation.world import Process, World
from walstream.errors import Transient
from walstream.lsn import Lsn, show
from walstream.op import postgres_time
from walstream.pipeline.pgoutput import LogicalMessage
from walstream.sources.postgres.incremental.chunk import Visibility

START: Final = 0x1_0000_0000
_CHANGE: Final = 0x100  # bytes of a transaction that changes the catalog
_SAVED: Final = 0.1  # of confirmations: they move what the slot keeps, too
_HEARD_EARLY: Final = 0.3  # of an altered table, before its transaction is decoded
_CHECKPOINT: Final = 0x80  # bytes of the record that begins a timeline


class SimServer(Answers):
    """Tables, WAL and slots, and what is told of them over sessions."""

    def __init__(self, world: World, tables: list[SimTable]) -> None:
        self.world = world
        self.tables = tables
        self.timeline = 1
        self.history = ""  # of the timelines before
        self._first = [(one, dict(one.rows), one.shape) for one in tables]
        self.catalog = SimCatalog()
        self.altered: set[int] = set()  # transactions that changed it
        self._altering: SimSession | None = None  # who has it locked
        self.lives = 0  # a crash ends every session
        self.snapshots: dict[str, Any] = {}  # that are exported, by name
        self.drivers: list[Any] = []  # which read under them
        self.taken: Callable[[SimServer], object] = lambda _server: None
        self.wal: list[WalTransaction | CatalogChange | LogicalMessage] = []
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
        self._logged: deque[WalTransaction | CatalogChange] = (
            deque()
        )  # that others do not see yet
        self._completed = 699  # the highest number of what has ended
        self.held_until = 0.0  # a standby keeps commits from being seen
        self.writer: Callable[[list[SimTable], Lsn, int], Writer] = self._writer

    def _writer(self, tables: list[SimTable], lsn: Lsn, seed: int) -> Writer:
        return PublishedWriter(tables, lsn, seed, self.catalog)

    # what its users do

    def commit(self, seed: int) -> WalTransaction:
        xid = (
            self.running.pop(seed % len(self.running)) if self.running else self.begin()
        )
        if xid in self.running:
            self.running.remove(xid)
        now = postgres_time(self.world.wall + self.world.now)
        done = self.writer(self.tables, self.wal_end, seed).write(xid, now)
        self._log(done)
        self.world.note(f"commit {done.lsn:X} {len(done.expected)}")
        self.committed(done)
        for sender in self.readers():
            if self.world.random.random() < _HEARD_EARLY:
                sender.forget(done)
        self._wake()
        self._logged.append(done)
        self._show()
        return done

    def _log(self, done: WalTransaction | CatalogChange) -> None:
        self.wal.append(done)
        self.commits.append(done.lsn)
        self.wal_end = done.end_lsn

    def change(self, catalog: SimCatalog, xid: int) -> None:
        """Commit a transaction that changed the catalog, or how tables are."""
        if xid in self.running:
            self.running.remove(xid)
        self.catalog = catalog
        self.altered.add(xid)
        states = [(one, dict(one.rows), one.shape) for one in self.tables]
        lsn = self.wal_end + _CHANGE // 2
        done = CatalogChange(lsn, self.wal_end + _CHANGE, xid, catalog, states)
        self._log(done)
        self.world.note(f"catalog {done.lsn:X}")
        self._logged.append(done)
        self._show()

    def abandon(self, xid: int) -> None:
        """Roll a transaction back."""
        if xid in self.running:
            self.running.remove(xid)
            self._completed = max(self._completed, xid)

    @property
    def locked(self) -> bool:
        """Return whether a transaction that changes publications is open."""
        found = self._altering
        return found is not None and not (found.owner and found.owner.dead)

    def lock(self, session: SimSession) -> None:
        """Lock the publications until the end of the transaction."""
        if self._altering is not session and self.locked:
            raise psycopg.errors.LockNotAvailable
        self._altering = session

    def unlock(self, session: SimSession) -> None:
        if self._altering is session:
            self._altering = None

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
        if self.world.random.random() < _SAVED:
            slot.on_disk = slot.confirmed

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
        self.lives += 1
        self._altering = None
        self.held_until = 0.0
        self._show()
        self.roll_back()
        self.down_until = self.world.now + self.world.random.choice((0.1, 2.0))

    def promote(self) -> None:
        """Fail over to a standby that has the slots, and lacks the last commits."""
        confirmed = max((one.confirmed for one in self.slots.values()), default=START)
        first = bisect_left(self.commits, max(confirmed, START))
        at = self.world.random.randint(first, len(self.commits))
        left = self.commits[at] if at < len(self.commits) else self.wal_end
        del self.wal[at:], self.commits[at:]
        states, self.catalog, self.altered = self._first, SimCatalog(), set()
        for item in self.wal:
            if isinstance(item, CatalogChange):
                self.catalog = item.catalog
                self.altered.add(item.xid)
            if not isinstance(item, LogicalMessage):
                states = item.states
        self.lives += 1
        self._altering = None
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

    def export(self) -> str:
        name = f"snapshot-{self._next_xid}-{len(self.snapshots)}"
        self.snapshots[name] = self.taken(self)
        return name

    def connect(self, _dsn: str, *, replication: bool = False) -> SimWalsender:
        self.world.port("connect")
        if self.world.now < self.down_until:
            raise Transient("connecting to PostgreSQL: it is away")
        return SimWalsender(self, owner=self.world.owner)

    def readable(self, descriptor: int, timeout_s: float) -> bool:
        """Wait for the server's bytes."""
        return self.world.wait(self.world.descriptors[descriptor], timeout_s)

    @contextmanager
    def session(self, dsn: str) -> Iterator[SimSession]:
        self.connect(dsn)
        yield SimSession(self)
