"""What the simulated server answers over sessions, but for its publications."""

from dataclasses import dataclass
from typing import Any, Final

from tests.simulation.catalog import SimCatalog
from tests.simulation.tables import Row, SimTable
from tests.simulation.walsender import IDENTIFIER, SimSlot
from tests.simulation.world import World
from walstream.errors import Transient
from walstream.lsn import Lsn
from walstream.postgres.server import Server
from walstream.postgres.slot import Slot
from walstream.postgres.slot_health import SlotHealth

_RUNNING: Final = 0x38  # bytes


class Answers:
    """Of a server; each stands where walstream asks."""

    world: World
    timeline: int
    tables: list[SimTable]
    catalog: SimCatalog
    slots: dict[str, SimSlot]
    wal_end: Lsn
    keepalives: set[Lsn]

    def table(self, oid: int) -> SimTable:
        (found,) = (one for one in self.tables if one.oid == oid)
        return found

    def leaves_of(self, table: SimTable) -> list[SimTable]:
        """List the partitions that belong to a root now."""
        return [one for one in table.leaves if self.catalog.root(one.oid) == table.oid]

    def rows_of(self, table: SimTable, *, seen: bool = False) -> dict[str, Row]:
        """Return a table's rows: a root's are those of its partitions."""
        found: dict[str, Row] = {}
        for one in self.leaves_of(table) if table.leaves else (table,):
            found |= one.seen if seen else one.rows
        return found

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
        root = self.catalog.root
        return {
            one.full_name: one.facts(
                self.table(above) if (above := root(one.oid)) else None,
                self.leaves_of(one),
            )
            for one in self.tables
            if oid in {None, one.oid, root(one.oid)}
        }

    def facts_and_end(
        self, connection: object, *, oid: int | None = None
    ) -> tuple[dict[str, Any], Lsn]:
        return self.facts(connection, oid=oid), self.wal_end

    def end_lsn(self, _connection: object) -> Lsn:
        return self.wal_end

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

    def create(self, _dsn: str, wish: Any, _patience: object) -> "Created":
        self.world.port("create slot")
        self.wal_end += _RUNNING  # the record by which a snapshot becomes consistent
        if not wish.temporary:
            self.slots[wish.name] = SimSlot(wish.name, self.wal_end, self.wal_end)
        name = self.export()
        created = Created(self.wal_end, name)
        self.keepalives.add(self.wal_end)  # all that ends below is in its snapshot
        self.world.port("slot created")
        return created

    def export(self) -> str:
        """Export a snapshot of all that is committed; return its name."""
        raise NotImplementedError

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

    def take_over(self, _dsn: str, _pid: int) -> None:
        """End the session of the slot's reader."""
        self.world.port("take over")
        self.cut()

    def cut(self) -> None:
        """Lose every connection."""
        raise NotImplementedError

    def toasted(
        self,
        _connection: object,
        oid: int,
        _op: object,
        key: dict[str, Any],
        wanted: list[str],
    ) -> Any:
        row = self.rows_of(self.table(oid)).get(key["id"])
        return None if row is None else tuple(row.get(name) for name in wanted)


@dataclass
class Created:
    """A slot that was just created."""

    consistent_point: Lsn
    snapshot: str = ""

    @property
    def connection(self) -> "Created":
        return self

    def close(self) -> None:
        pass
