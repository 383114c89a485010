"""The PostgreSQL that consumers write to: rows with locks, transactions, sessions.

READ COMMITTED: a statement sees what is committed and its own transaction's writes; who
writes a row that another transaction wrote waits for that one's end, and looks again. A
cycle of waits fails one of them. A crash ends every session; what is committed stays.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from tests.simulation.world import Process, World

_DEADLOCK_S: Final = 1.0
Key = tuple[Any, ...]
Value = Any


@dataclass(eq=False)
class Entry:
    """A row, or where one may be: it can be locked all the same."""

    committed: Value | None = None
    holder: "Tx | None" = None
    written: Value | None = None  # by the holder; None: deleted


class Relation:
    """A table, by its primary key."""

    def __init__(self) -> None:
        self.entries: dict[Key, Entry] = {}
        self.users: set[Tx] = set()
        self.alone: Tx | None = None  # who empties it

    def committed(self) -> dict[Key, Value]:
        return {
            key: entry.committed
            for key, entry in self.entries.items()
            if entry.committed is not None
        }


@dataclass(eq=False)
class Advisory:
    """An advisory lock: of one, or shared by several."""

    holders: dict["Tx", bool] = field(default_factory=dict)  # alone?

    def is_free_for(self, tx: "Tx", *, alone: bool) -> bool:
        others = [how for one, how in self.holders.items() if one is not tx]
        return not others or not (alone or any(others))


class Tx:
    """A transaction; its statements run one at a time."""

    def __init__(self, target: "SimTarget", alive: Callable[[], None]) -> None:
        self.target = target
        self.xid = target.draw_xid()
        self._alive = alive  # raises where the session was ended
        self._entries: list[Entry] = []
        self._relations: list[Relation] = []
        self._advisory: list[Advisory] = []
        self.waits_for: list[Tx] = []
        self.failed = self.over = False
        self.on_commit: list[Callable[[], None]] = []

    # what statements are made of

    def rows(self, name: str) -> dict[Key, Value]:
        """Return the rows that a statement sees now."""
        relation = self._enter(name)
        found = {key: self._seen(entry) for key, entry in relation.entries.items()}
        return {key: value for key, value in found.items() if value is not None}

    def get(self, name: str, key: Key) -> Value | None:
        entry = self._enter(name).entries.get(key)
        return None if entry is None else self._seen(entry)

    def lock(self, name: str, key: Key) -> Value | None:
        """Lock a row, or the place of one; return it as it is then."""
        entry = self._enter(name).entries.setdefault(key, Entry())
        self._wait(lambda: [entry.holder] if entry.holder is not None else [])
        if entry.holder is None:
            entry.holder, entry.written = self, entry.committed
            self._entries.append(entry)
        return entry.written

    def put(self, name: str, key: Key, value: Value | None) -> None:
        """Write a row, which is locked; None deletes it."""
        self.lock(name, key)
        self.target.relations[name].entries[key].written = value

    def empty(self, name: str) -> None:
        """Remove all rows, alone with the table until the end."""
        relation = self.target.relation(name)
        self._wait(
            lambda: [
                one for one in (*relation.users, relation.alone) if one is not None
            ]
        )
        relation.alone = self
        self._relations.append(relation)
        for key in relation.entries:
            self.put(name, key, None)

    def advise(self, key: Hashable, *, alone: bool = True) -> None:
        """Have an advisory lock; wait for it."""
        lock = self.target.advisory.setdefault(key, Advisory())
        self._wait(
            lambda: [] if lock.is_free_for(self, alone=alone) else [*lock.holders]
        )
        self._hold(lock, alone=alone)

    def try_advise(self, key: Hashable) -> bool:
        lock = self.target.advisory.setdefault(key, Advisory())
        if not lock.is_free_for(self, alone=True):
            return False
        self._hold(lock, alone=True)
        return True

    def _hold(self, lock: Advisory, *, alone: bool) -> None:
        lock.holders[self] = alone or lock.holders.get(self, False)
        self._advisory.append(lock)

    def _enter(self, name: str) -> Relation:
        relation = self.target.relation(name)
        self._wait(lambda: [relation.alone] if relation.alone is not None else [])
        if self not in relation.users:
            relation.users.add(self)
            self._relations.append(relation)
        return relation

    def _seen(self, entry: Entry) -> Value | None:
        return entry.written if entry.holder is self else entry.committed

    def _wait(self, in_the_way: Callable[[], Iterable["Tx"]]) -> None:
        """Wait for those that are in the way; fail in a cycle of waits."""
        world = self.target.world
        while True:
            self._alive()
            self.waits_for = [one for one in in_the_way() if one is not self]
            if not self.waits_for:
                return
            self.target.waits += 1
            over = world.wait(
                lambda: any(one.over for one in self.waits_for) or self.over,
                _DEADLOCK_S,
            )
            if not over and self._is_in_cycle():
                self.waits_for = []
                self.target.deadlocks += 1
                raise psycopg.errors.DeadlockDetected("deadlock detected")

    def _is_in_cycle(self) -> bool:
        met: set[Tx] = set()
        ahead = [*self.waits_for]
        while ahead:
            one = ahead.pop()
            if one is self:
                return True
            if one not in met and not one.over:
                met.add(one)
                ahead += one.waits_for
        return False

    # its end

    def commit(self) -> None:
        if self.over:
            return
        for entry in self._entries:
            entry.committed = entry.written
        self.target.committed.add(self.xid)
        for act in self.on_commit:
            act()
        self._end()

    def roll_back(self) -> None:
        if not self.over:
            self._end()

    def _end(self) -> None:
        self.over = True
        self.waits_for = []
        for entry in self._entries:
            entry.holder = entry.written = None
        for relation in self._relations:
            relation.users.discard(self)
            if relation.alone is self:
                relation.alone = None
        for lock in self._advisory:
            lock.holders.pop(self, None)


@dataclass(eq=False)
class Backend:
    """A session on the server's side."""

    pid: int
    owner: Process | None
    tx: Tx | None = None
    gone: str = ""  # why it ended
    changed: float = 0.0  # when its state did
    active: bool = False  # does it run a statement?

    def end(self, why: str) -> None:
        self.gone = self.gone or why
        if self.tx is not None:
            self.tx.roll_back()
            self.tx = None


class SimTarget:
    """The database of an application, or of a mirror."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.relations: dict[str, Relation] = {}
        self.advisory: dict[Hashable, Advisory] = {}
        self.backends: list[Backend] = []
        self.committed: set[str] = set()  # transactions
        self.down_until = 0.0
        self.cuts = 0  # so many of the next statements lose their session
        self.waits = self.deadlocks = 0
        self.lost_answers = 0  # of a COMMIT
        self.ended = 0  # sessions, by others
        self._pids = self._xids = 700

    def relation(self, name: str) -> Relation:
        return self.relations.setdefault(name, Relation())

    def draw_xid(self) -> str:
        self._xids += 1
        return str(self._xids)

    def begin(self) -> Backend:
        """Begin a session."""
        self.world.port("connect to the target")
        if self.world.now < self.down_until:
            raise psycopg.OperationalError("the database system is starting up")
        self._pids += 1
        self.backends = [one for one in self.backends if not one.gone]
        backend = Backend(self._pids, self.world.owner, changed=self.world.now)
        self.backends.append(backend)
        return backend

    def terminate(self, pid: int) -> None:
        for backend in self.backends:
            if backend.pid == pid:
                backend.end("terminating connection due to administrator command")
                self.ended += 1

    def crash(self) -> None:
        for backend in self.backends:
            backend.end("server closed the connection unexpectedly")
        self.backends.clear()
        self.down_until = self.world.now + self.world.random.choice((0.1, 3.0))

    def lose(self, owner: Process) -> None:
        """Learn that a client is gone: at once, or after its network's patience."""
        after = self.world.random.choice((0.0, 0.0, 2.0, 30.0))
        for backend in [one for one in self.backends if one.owner is owner]:
            self.world.at(after, lambda one=backend: one.end("it is gone"))  # type: ignore[misc]

    def holders(self, key: Hashable, idle_s: float) -> list[tuple[int, bool]]:
        """List who has an advisory lock, and whether it did nothing for so long."""
        lock, now = self.advisory.get(key, Advisory()), self.world.now
        return [
            (one.pid, not one.active and now - one.changed > idle_s)
            for one in self.backends
            if one.tx is not None and one.tx in lock.holders
        ]
