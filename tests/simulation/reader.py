"""Reads of a table beside the stream, as the simulated server sees it then."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.simulation.server import SimServer
from tests.simulation.tables import SimTable
from walstream.errors import ConfigError
from walstream.lsn import Lsn
from walstream.op import Table, postgres_time
from walstream.sources.postgres.backfill.publication_filter import NoSuchTable
from walstream.sources.postgres.incremental.chunk import Key, KeyChunk, Visibility

_CHUNK: Final = 2  # rows


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
        shape = found.seen_shape
        if shape.identity == "n" or not shape.key:
            raise ConfigError(f"table {name!r} has no row key")
        named = self.server.catalog.publications.values()
        if not any(found.oid in made.members for made in named):
            raise NoSuchTable(f"table {name!r} is not in the publication")
        columns = shape.columns
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
        there = server.rows_of(found, seen=True)
        keys = sorted(one for one in there if one > start)[:most]
        rows = [[there[one].get(name) for name in table.columns] for one in keys]
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
