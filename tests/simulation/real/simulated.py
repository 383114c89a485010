"""The simulated PostgreSQL, as acts are done to it."""

from collections.abc import Callable
from typing import Any, Final

from tests.simulation.real.client import Client
from tests.simulation.real.statements import StatementWriter
from tests.simulation.schedule import TABLES
from tests.simulation.server import SimServer
from tests.simulation.tables import SimTable
from tests.simulation.walsender import SimSlot, SimWalsender
from tests.simulation.world import World
from walstream.lsn import Lsn
from walstream.postgres.catalog import TableFacts
from walstream.postgres.slot import Slot
from walstream.sources.postgres.incremental.chunk import Visibility

_FIRST_OID: Final = 101
_UP_AGAIN_S: Final = 3.0


class Simulated:
    """One of it, with its tables; what commits do to them can be read as SQL."""

    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.tables = [
            SimTable(_FIRST_OID + at, name) for at, name in enumerate(TABLES)
        ]
        for table in self.tables[:1]:
            table.fill(3)
        self.server = SimServer(self.world, self.tables)
        self.server.writer = self._writer
        self.begin = self.end  # of the WAL, before any act
        self._writers: list[StatementWriter] = []
        self._senders: dict[int, SimWalsender] = {}

    def _writer(self, tables: list[SimTable], lsn: int, seed: int) -> StatementWriter:
        self._writers.append(StatementWriter(tables, lsn, seed))
        return self._writers[-1]

    # what clients do

    def commit(self, number: int) -> tuple[int, StatementWriter]:
        """Commit a transaction; give its number and what it executes."""
        done = self.server.commit(number)
        self.rest()
        return done.xid, self._writers[-1]

    def abort(self, number: int) -> tuple[int, StatementWriter]:
        """Roll one back; give its number and what it would have done."""
        copies = [
            SimTable(one.oid, one.name, one.shape, dict(one.rows))
            for one in self.tables
        ]
        for table, copied in zip(self.tables, copies, strict=True):
            copied.numbers, copied.last = dict(table.numbers), table.last
        writer = StatementWriter(copies, self.end, number)
        writer.write(0, 0)
        return self.server.pass_by(), writer

    def rest(self) -> None:
        """Let all happen that is due."""
        self.world.wait(lambda: False, 1.0)

    @property
    def end(self) -> Lsn:
        return self.server.wal_end

    def create(self, slot: str) -> None:
        self.server.slots[slot] = SimSlot(slot, self.end, self.end)

    def copy(self, slot: str, to: str) -> None:
        self.server.copy(None, slot, to)

    def drop(self, slot: str) -> None:
        self.server.drop(None, slot)

    def crash(self) -> None:
        self.server.crash()
        self.world.wait(lambda: False, _UP_AGAIN_S)

    # what they see

    def start(self, command: str) -> Client:
        """Begin a stream."""
        sender = self.server.connect("")
        sender.execute(command)
        client = Client(sender, lambda seconds: self.world.wait(lambda: False, seconds))
        self._senders[id(client)] = sender
        return client

    def cut(self, client: Client, how: str) -> None:
        """End a stream as a process dies, or as an administrator does."""
        sender = self._senders.pop(id(client))
        sender.close()
        self.rest()

    def slot(self, name: str) -> Slot | None:
        return self.server.find(None, name)

    def facts(self) -> dict[str, TableFacts]:
        facts: dict[str, TableFacts] = self.server.facts(None)
        return facts

    def rows(self) -> dict[str, dict[str, dict[str, Any]]]:
        return {table.name: dict(table.rows) for table in self.tables}

    def snapshot(self) -> Visibility:
        return self.server.snapshot()

    def statements(self, make: Callable[[SimTable], list[str]]) -> list[str]:
        return [one for table in self.tables for one in make(table)]
