"""The first backfill: exported snapshots, and the driver that reads under them.

The tasks are the real ones, with their producers; each lane of a driver is a stack of
its own. A driver is another process than the one that orders: either dies alone, and
what an order left behind runs on until it looks.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

from tests.simulation.answers import Created
from tests.simulation.disk import Documents, read
from tests.simulation.host import process_in
from tests.simulation.server import SimServer
from tests.simulation.tables import Row, SimTable
from tests.simulation.world import Process, World
from walstream.config import Config
from walstream.errors import Transient, WalstreamError
from walstream.lsn import Lsn
from walstream.op import Table
from walstream.pipeline.shutdown import Stop
from walstream.sources.postgres.backfill.chunk import (
    Chunk,
    ChunkRelation,
    PageRange,
    SnapshotGone,
    TableRewritten,
)
from walstream.sources.postgres.backfill.plan import BackfillPlan
from walstream.sources.postgres.backfill.publication_filter import (
    KeyedTable,
    NoSuchTable,
)
from walstream.sources.postgres.backfill.task_factory import SnapshotOrder
from walstream.spark.driver.messages import Failed, Finished, Message
from walstream.spark.in_process import InProcessRun
from walstream.spark.leash import Leash
from walstream.spark.outcome import ChunkRefused, refusal

_PAGE: Final = 2  # rows
_READ_S: Final = (0.0, 0.001, 0.02, 0.2)  # a row
_LANES: Final = 2
_LOOK_S: Final = 0.05
_END_S: Final = 5.0


@dataclass
class SimSnapshot:
    """What a transaction sees that imports it."""

    rows: Mapping[int, list[Row]]  # by the table's oid, as they lie there
    files: Mapping[int, int]
    life: int  # of the server
    holder: Process | None

    @classmethod
    def of(cls, server: SimServer) -> "SimSnapshot":
        rows = {
            one.oid: [dict(row) for row in one.rows.values()] for one in server.tables
        }
        files = {one.oid: one.file for one in server.tables}
        return cls(rows, files, server.lives, server.world.owner)


class SimHolder:
    """Holds a snapshot, as `Holder`."""

    def __init__(self, server: SimServer, created: Created) -> None:
        server.world.port("hold a snapshot")
        self._server = server
        self.point: Lsn = created.consistent_point
        self.name = created.snapshot + "-held"
        server.snapshots[self.name] = server.snapshots.pop(created.snapshot)
        self.session = "1 at once"

    def check(self) -> None:
        self._server.world.port("look at the snapshot")
        snapshot_of(self._server, self.name)

    def close(self) -> None:
        self._server.snapshots.pop(self.name, None)


def snapshot_of(server: SimServer, name: str) -> SimSnapshot:
    """Return a snapshot; raise when the session that held it is gone."""
    found: SimSnapshot | None = server.snapshots.get(name)
    if (
        found is None
        or found.life != server.lives
        or (found.holder is not None and found.holder.dead)
    ):
        raise SnapshotGone(f"snapshot {name!r} is gone")
    return found


@dataclass
class SimImport:
    """A transaction that imported a snapshot: it sees that until it ends."""

    server: SimServer
    snapshot: SimSnapshot

    def rows(self, chunk: Chunk) -> Iterator[bytes]:
        """Read a chunk as COPY text, row by row."""
        server, relation, span = self.server, chunk.relation, chunk.span
        table = server.table(relation.oid)
        if set(relation.table.columns) - set(table.shape.columns):
            raise TableRewritten(f"{relation.full_name!r}: a column is gone")
        found = self.snapshot.rows[relation.oid]
        if isinstance(span, PageRange):
            end = len(found) if span.high is None else span.high * _PAGE
            found = found[span.low * _PAGE : end]
        same = table.file == self.snapshot.files[relation.oid]
        for row in found if same else ():
            server.world.port("read a row")
            server.world.wait(lambda: False, server.world.random.choice(_READ_S))
            if server.lives != self.snapshot.life:
                raise Transient("reading a chunk: the server closed the connection")
            values = (row.get(name) for name in relation.table.columns)
            yield (
                "\t".join("\\N" if one is None else one for one in values) + "\n"
            ).encode()
        if table.file != self.snapshot.files[relation.oid]:
            raise TableRewritten(f"{relation.full_name!r} was truncated meanwhile")


def _line(values: Iterable[str | None]) -> bytes:
    text = "\t".join("\\N" if one is None else one for one in values)
    return f"{text}\n".encode()


def planned(
    server: SimServer, tables: Iterable[KeyedTable], *, first: int = 1, **_: object
) -> BackfillPlan:
    """Cut tables into chunks of a page or more, as `plan`."""
    chunks: list[Chunk] = []
    refused: dict[str, WalstreamError] = {}
    members = {
        oid for made in server.catalog.publications.values() for oid in made.members
    }
    for wanted in tables:
        (found,) = (one for one in server.tables if one.full_name == wanted.full_name)
        if found.oid not in members:
            refused[wanted.full_name] = NoSuchTable(
                f"{wanted.full_name!r} is not published"
            )
            continue
        for part in server.leaves_of(found) if found.leaves else (found,):
            relation = ChunkRelation(
                "public", part.name, part.oid, _table(found, wanted)
            )
            pages = range(max(1, -(-len(part.rows) // _PAGE)))
            for page in pages:
                span = PageRange(page, None if page == pages[-1] else page + 1)
                chunks.append(Chunk(first + len(chunks), relation, span, 100))
    return BackfillPlan(chunks, refused)


def _table(found: SimTable, wanted: KeyedTable) -> Table:
    columns = found.shape.columns
    key = tuple(at for at, name in enumerate(columns) if name in wanted.key)
    oids = tuple(20 if name == "id" else 25 for name in columns)
    return Table("public", found.name, columns, key, oids)


class SimLeash:
    """Ties tasks to a process that ordered them, as `Leash`."""

    def __init__(self, driver: "SimDriver", owner: Process | None) -> None:
        self._driver = driver
        self._owner = owner

    def check(self) -> None:
        if self._owner is not None and self._owner.dead:
            raise Transient("the driver is gone: its tasks stop")
        if self._driver.closed:
            raise Transient("the job ended: its tasks stop")

    @contextmanager
    def worn(self) -> Iterator[None]:
        self.check()
        self._driver.busy += 1
        try:
            yield
        finally:
            self._driver.busy -= 1


class SimDriver:
    """A driver, and the connection to it, as `Driver`."""

    def __init__(self, server: SimServer, config: Config) -> None:
        server.world.port("connect to the driver")
        self._server = server
        self._config = config
        self._world: World = server.world
        self._owner = self._world.owner
        self.process = process_in(self._world, "driver")
        self.closed = False
        self.busy = 0  # tasks that run
        self._lanes = 0  # that are not over
        self._inbox: deque[Message] = deque()
        self._chunks: deque[Chunk] = deque()
        server.drivers.append(self)

    def order(self, order: SnapshotOrder) -> None:
        self._world.port("order")
        self._chunks.extend(order.chunks)
        leash = cast("Leash", SimLeash(self, self._owner))
        with self._world.owned(self.process):
            task = order.task(self._config, leash)
        tries = InProcessRun(order.chunks, _LANES)
        self._lanes = _LANES
        for _ in range(_LANES):
            self._world.spawn(self.process, lambda: self._work(tries, task))

    def _work(self, tries: InProcessRun, task: Callable[[Any], Any]) -> None:
        """Do chunks, one after the other, as a lane of the driver."""
        try:
            while self._chunks and not self.closed:
                heard = tries._one(task, self._chunks.popleft())
                if isinstance(heard, ChunkRefused):
                    raise refusal(heard)
                self._inbox.append(cast("Message", heard))
        except Exception as error:  # noqa: BLE001 - it is told
            self._chunks.clear()
            self._inbox.append(Failed(cast("Any", error)))
        finally:
            self._lanes -= 1
        if not self._lanes:
            self._inbox.append(Finished())

    def hear(self, wait_s: float) -> Message | None:
        world = self._world
        world.port("hear of the driver")
        world.wait(lambda: bool(self._inbox) or self.process.dead, wait_s)
        if self._inbox:
            return self._inbox.popleft()
        if self.process.dead:
            return Failed(Transient("Spark's process ended"))
        return None

    def close(self) -> None:
        self.closed = True
        self._world.port("leave the driver")
        self._world.wait(lambda: not self._running, _END_S)

    @property
    def _running(self) -> bool:
        return bool(self._lanes) and not self.process.dead

    @property
    def holds(self) -> bool:
        """Return whether some task of it may send rows."""
        return bool(self.busy) and not self.process.dead


def orphans_ended(server: SimServer, stop: Stop) -> bool:
    """Wait until no task sends rows; False: a stop came."""
    while any(one.holds for one in server.drivers):
        if stop.requested:
            return False
        stop.event.wait(_LOOK_S)
    return not stop.requested or not server.drivers


def published(server: SimServer, _names: Sequence[str]) -> list[str]:
    """Name the tables whose rows go out."""
    catalog = server.catalog
    members = catalog.members
    return sorted(
        one.full_name
        for one in server.tables
        if one.oid in members and catalog.root(one.oid) is None
    )


def given_up(documents: Documents, name: str) -> bool:
    """Return whether a table's first backfill failed."""
    return bool((read(documents, name) or {}).get("failed"))


def unread(documents: Documents) -> bool:
    """Return whether a table of the first backfill is left."""
    tables = [name for name in documents if name.startswith("backfill/")]
    return any((read(documents, name) or {}).get("left") for name in tables)
