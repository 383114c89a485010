"""What an owner of the tables does to publications, partitions, keys and identities.

Each waits while another transaction has the publications locked; what is taken away is
given back after a while, at the latest when the schedule comes to rest.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import orjson
import psycopg

from tests.simulation.catalog import SimCatalog
from tests.simulation.disk import Documents
from tests.simulation.tables import SimTable

if TYPE_CHECKING:
    from tests.simulation.run import Run
    from tests.simulation.server import SimServer

MAIN: Final = "walstream"
ROOT: Final = "parted"
LEAVES: Final = ("even", "odd")
_CHECKSUM: Final = 4
_OF_OLD: Final = 600  # a transaction
_AGAIN_S: Final = 0.05
_PAUSES: Final = (0.0, 0.5, 4.0, 9.0)  # s
Change = Callable[[SimCatalog, int], SimCatalog]


def partitioned(first_oid: int) -> Iterator[SimTable]:
    """Make a partition root and its leaves, whose columns stand in another order."""
    leaves = tuple(
        SimTable(first_oid + 1 + at, name, bound=(at, len(LEAVES)))
        for at, name in enumerate(LEAVES)
    )
    last = leaves[-1]
    columns = (last.shape.columns[0], *reversed(last.shape.columns[1:]))
    last.shape = last.seen_shape = last.shape._replace(columns=columns)
    yield SimTable(first_oid, ROOT, leaves=leaves)
    yield from leaves


def attach_all(server: "SimServer") -> None:
    """Have each partition belong to its root, from before all."""
    for root in server.tables:
        for leaf in root.leaves:
            catalog = server.catalog
            server.catalog = catalog.attach(leaf.oid, root.oid, _OF_OLD)


def alter(run: "Run", change: Change) -> None:
    """Commit a change of the catalog, once nobody else is about to."""
    server = run.server
    if server.locked:
        run.later(_AGAIN_S, lambda: alter(run, change))
        return
    xid = server.begin()
    try:
        server.change(change(server.catalog, xid), xid)
    except (psycopg.errors.DuplicateObject, psycopg.errors.UndefinedObject):
        server.abandon(xid)  # another one did it first


def _later(run: "Run", change: Change) -> None:
    pause = run.world.random.choice(_PAUSES)
    run.later(pause, lambda: alter(run, change))


def _write(run: "Run") -> None:
    """Have something written meanwhile."""
    for _ in range(run.world.random.choice((1, 1, 3))):
        run.server.commit(run.world.random.getrandbits(32))


def _member(run: "Run") -> int | None:
    members = run.server.catalog.publications[MAIN].members
    return run.world.random.choice(sorted(members)) if members else None


def drop_table(run: "Run") -> None:
    """ALTER PUBLICATION … DROP TABLE."""
    if oid := _member(run):
        alter(run, lambda catalog, _: catalog.remove(MAIN, oid))
        _write(run)


def drop_and_add(run: "Run") -> None:
    """Take a table out, and put it in again before or after somebody looks."""
    if oid := _member(run):
        alter(run, lambda catalog, _: catalog.remove(MAIN, oid))
        _write(run)
        _later(run, lambda catalog, xid: catalog.add(MAIN, oid, xid))


def publish_again(run: "Run") -> None:
    """ALTER PUBLICATION … SET (publish = …) to what it is."""
    operations = run.server.catalog.publications[MAIN].operations
    alter(run, lambda catalog, xid: catalog.publish(MAIN, operations, xid))


def publish_less(run: "Run") -> None:
    """Publish no deletes any more."""
    alter(run, lambda catalog, xid: catalog.publish(MAIN, ("insert", "update"), xid))


def _plain(run: "Run") -> SimTable:
    tables = [one for one in run.server.tables if not one.leaves and not one.bound]
    return run.world.random.choice(tables)


def _shape(run: "Run", table: SimTable, *, identity: str, key: bool) -> None:
    def change(catalog: SimCatalog, _xid: int) -> SimCatalog:
        table.shape = table.shape._replace(identity=identity, key=key)
        return catalog

    alter(run, change)


def identify_nothing(run: "Run") -> None:
    """ALTER TABLE … REPLICA IDENTITY NOTHING, and DEFAULT after a while."""
    _lose(run, _plain(run), identity="n", key=True)


def drop_key(run: "Run") -> None:
    """Drop a primary key, and make it again after a while."""
    (table,) = (one for one in run.server.tables if one.keyed)
    _lose(run, table, identity="d", key=False)


def _lose(run: "Run", table: SimTable, *, identity: str, key: bool) -> None:
    """Take a table's identity away for so long that it may be moved meanwhile."""
    _shape(run, table, identity=identity, key=key)
    _write(run)
    pause = run.world.random.choice((0.5, 9.0, 12.0))
    for part in (0.6, 0.8, 0.95):
        run.later(pause * part, lambda: _write(run))
    run.later(pause, lambda: _shape(run, table, identity="d", key=True))


def detach(run: "Run") -> None:
    """Detach a partition, and attach it again after a while."""
    (root,) = (one for one in run.server.tables if one.leaves)
    leaf = run.world.random.choice(root.leaves)
    if run.server.catalog.root(leaf.oid) is None:
        return
    alter(run, lambda catalog, _: catalog.detach(leaf.oid))
    _write(run)
    _later(run, partial(_attached, root, leaf))


def _attached(
    root: SimTable, leaf: SimTable, catalog: SimCatalog, xid: int
) -> SimCatalog:
    if catalog.root(leaf.oid) is not None:
        return catalog
    return catalog.attach(leaf.oid, root.oid, xid)


def reading(server: "SimServer", documents: Documents) -> bool:
    """Return whether tables are still to be read; not as what they are no more."""
    roots = server.catalog.ties
    partitions = {
        f"beside/{one.full_name}" for one in server.tables if one.oid in roots
    }
    return any(name.startswith("beside/") for name in documents.keys() - partitions)


def heal(run: "Run") -> None:
    """Give tables back what rows are known by, and roots their partitions."""
    for table in run.server.tables:
        if table.shape.identity == "n" or not table.shape.key:
            _shape(run, table, identity="d", key=True)
        for leaf in table.leaves:
            if run.server.catalog.root(leaf.oid) is None:
                alter(run, partial(_attached, table, leaf))


def settled(server: "SimServer", documents: Documents) -> bool:
    """Return whether walstream has seen all that was done, and done its part."""
    stored = documents.get("publications")
    if server.locked or stored is None or keyless(documents):
        return False
    known = orjson.loads(stored[_CHECKSUM:])
    named = server.catalog.publications
    missing = {
        one.oid for one in server.tables if server.catalog.root(one.oid) is None
    } - named[MAIN].members.keys()
    leaves: dict[int, dict[int, str]] = {}
    for leaf, (root, xmin) in server.catalog.ties.items():
        leaves.setdefault(root, {})[leaf] = str(xmin)
    found = {
        int(root): {int(leaf): mark for leaf, mark in marks.items()}
        for root, marks in known[MAIN]["leaves"].items()
    }
    return (
        not missing
        and found == leaves
        and all(
            name in known
            and known[name]["xmin"] == made.xmin
            and known[name].get("altered") is None
            and {int(oid): ways for oid, ways in known[name]["ways"].items()}
            == {
                oid: [f"row {row} {xmin}"]
                for oid, (row, xmin) in made.members.items()
                if oid not in server.catalog.ties
            }
            for name, made in named.items()
        )
    )


def keyless(documents: Documents) -> bool:
    """Return whether rows went out without a key, and were not read again since."""
    return any(name.startswith("keyless/") for name in documents)


Ddl = Callable[["Run"], None]
DDL: Final[dict[str, Ddl]] = {
    "drop table": drop_table,
    "drop and add table": drop_and_add,
    "publish again": publish_again,
    "identity nothing": identify_nothing,
    "drop key": drop_key,
    "detach": detach,
}
