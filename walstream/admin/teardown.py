"""Plan of a destroy: what a source made for itself, and what of it stays."""

import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from walstream.admin.reset import KnownSource, known_source
from walstream.config import Config, PostgresSource
from walstream.config.source import slot_copy
from walstream.errors import Repair, StateDamaged
from walstream.lsn import Lsn
from walstream.postgres import publication, quoting, slot_inventory
from walstream.postgres import server as servers
from walstream.postgres.connection import Connection, session
from walstream.postgres.server import Server
from walstream.postgres.slot_inventory import SlotFacts, released
from walstream.postgres.start_table import check_ours, check_server
from walstream.state.store import LmdbStore

_OWNED = "SELECT pubname FROM pg_publication WHERE pg_get_userbyid(pubowner) = %s"


@dataclass(frozen=True, slots=True)
class Kept:
    """A publication or slot that stays, and why."""

    what: str
    why: str
    sql: str = ""  # what drops it


@dataclass(frozen=True, slots=True)
class Teardown:
    """Plan of a destroy: what it drops, and what stays."""

    source: str
    server: str = ""  # "": the source has none, or it is not asked
    origin: str = ""  # its system identifier and database
    slot: SlotFacts | None = None
    copies: Sequence[str] = ()  # slots of detached sinks
    publications: Sequence[str] = ()
    position: Lsn | None = None
    folder: Path | None = None  # of its state, if it exists
    remains: Path | None = None  # of a state that an earlier call began to delete
    topics: Sequence[str] = ()  # that the state names
    stays: Sequence[Kept] = ()

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to drop."""
        dropped = (self.slot, self.copies, self.publications, self.folder, self.remains)
        return not any(dropped)

    @property
    def interrupted(self) -> bool:
        """Return whether an earlier call did all but delete the state."""
        return self.remains is not None and self.folder is None

    def changes(self, since: "Teardown") -> list[str]:
        """Name what is another than before; how much WAL a slot holds is not one."""
        before = since.parts()
        return [what for what, one in self.parts().items() if before[what] != one]

    def parts(self) -> dict[str, object]:
        """Return by its name what `changes` compares."""
        return {
            "server": self.origin,
            "slot": self.slot and self.slot.name,
            "slots of detached sinks": tuple(self.copies),
            "publications": tuple(self.publications),
            "position": self.position,
            "state": (self.folder, self.remains),
            "what stays": tuple(self.stays),
        }


@contextmanager
def planned(config: Config, name: str) -> Iterator[tuple[Teardown, Connection | None]]:
    """Yield the plan, and the session that all it drops was looked at in."""
    source = config.source(name)
    folder = Path(config.state) / name
    remains = aside_of(folder)
    teardown = Teardown(
        name,
        folder=folder if folder.is_dir() else None,
        remains=remains if remains.is_dir() else None,
    )
    if teardown.interrupted or not isinstance(source, PostgresSource):
        yield teardown, None
        return
    known = _known(config, name, source)
    with session(source.dsn) as connection:
        yield _plan(config, teardown, source, known, connection), connection


def _known(config: Config, name: str, source: PostgresSource) -> KnownSource:
    """Read the state; a damaged one does not say what is to stay."""
    try:
        return known_source(Path(config.state) / name, source)
    except StateDamaged as error:
        if not error.repair:  # a newer walstream reads it
            raise
        forget = config.command(f"walstream positions reset {name}")
        again = config.command(f"walstream destroy {name}")
        raise StateDamaged(
            f"{error.args[0]}: it no longer says which slots source {name!r} made,"
            " and nothing was dropped",
            hint="restore the folder from a copy; or make sure that `dsn` and `slot`"
            f" are right, and forget it: {forget}; then: {again}",
            repair=Repair(command=forget, then=again),
        ) from error


def _plan(
    config: Config,
    teardown: Teardown,
    source: PostgresSource,
    known: KnownSource,
    connection: Connection,
) -> Teardown:
    name = teardown.source
    server = servers.look(connection)
    _check_server(config, name, known, server)
    other = list(_other_slot(known.other_slot(source), source))
    own = [] if other else [source.slot]
    copies = copies_of(Path(config.state) / name, known, source)
    drops = _ours(connection, [*own, *copies], server)
    readers = _readers(config, name, source, connection, drops)
    publications, kept = _publications(source, connection, server.role, readers)
    position = known.stored.position
    slot = slot_inventory.find(connection, source.slot) if own else None
    return replace(
        teardown,
        server=f"PostgreSQL {server.version // 10000}, database {server.database}",
        origin=server.origin,
        slot=slot,
        copies=[one for one in drops if one not in own],
        publications=publications,
        position=position.resume if position else None,
        topics=sorted({one.partition("/")[2] for one in known.topics}),
        stays=[*other, *kept],
    )


def _check_server(
    config: Config, name: str, known: KnownSource, server: Server
) -> None:
    """Refuse a server that the state is not about: its slots are another's."""
    for code, problem in servers.problems(
        server, "", resuming=False, allow_synchronous=True
    ):
        if code == "standby":  # which has slots of its own
            raise problem
    if known.stored.position is not None:
        folder = shlex.quote(str(Path(config.state) / name))
        again = config.command(f"walstream destroy {name}")
        hint = (
            "nothing was dropped. If that server no longer exists, only the state is"
            f" left: rm -r {folder} deletes it; otherwise correct the dsn of source"
            f" {name!r}, then: {again}"
        )
        repair = Repair(then=f"correct the dsn of source {name!r}, then: {again}")
        check_server(known.stored.position, server, hint, repair)


def _ours(connection: Connection, names: Sequence[str], server: Server) -> list[str]:
    """Return those that exist; refuse one that is read, or that another made."""
    found = []
    for name in names:
        if (slot := released(connection, name)) is not None:
            check_ours(slot, server)
            found.append(name)
    return found


def _other_slot(other: str | None, source: PostgresSource) -> Iterator[Kept]:
    if other is not None:
        why = f"the state is about slot {other}, the configuration names {source.slot}"
        for name in (other, source.slot):
            yield Kept(
                f"slot {name}",
                why,
                f"SELECT pg_drop_replication_slot({quoting.text(name)});",
            )


def copies_of(folder: Path, known: KnownSource, source: PostgresSource) -> list[str]:
    """Name the slots of detached sinks, whatever the source's slot is named now.

    Without its sink's state, which goes, no reader can use one.
    """
    about = known.slot or source.slot
    found = dict(known.away)
    for one in (folder / "away").glob("*/"):
        if one.name not in found:
            found[one.name] = _slot_in(one) or slot_copy(about, one.name)
    return sorted(set(found.values()) - {about, source.slot})


def _slot_in(folder: Path) -> str | None:
    """Read which slot the state of a detached sink is about."""
    try:
        with LmdbStore.open_read_only(folder) as positions:
            position = positions.position() if positions else None
    except StateDamaged:
        return None
    return position.slot if position else None


def _publications(
    source: PostgresSource, connection: Connection, role: str, readers: str
) -> tuple[list[str], list[Kept]]:
    """Return those that walstream made for this source alone, and the others."""
    both = source.publication, publication.insert_only(source.publication)
    found = publication.find(connection, both)
    owned = {row[0] for row in connection.execute(_OWNED, (role,)).fetchall()}
    drops: list[str] = []
    stays: list[Kept] = []
    for one in found:
        why = readers
        if not source.tables:
            why = "walstream did not make it: `tables` is empty"
        elif one not in owned:
            why = f"it belongs to another role than {role}"
        if why:
            statement = f"DROP PUBLICATION {quoting.name(one)};"
            stays.append(Kept(f"publication {one}", why, statement))
        else:
            drops.append(one)
    return drops, stays


def _readers(
    config: Config,
    name: str,
    source: PostgresSource,
    connection: Connection,
    dropped: Collection[str],
) -> str:
    """Return who else may read the publications; "": nobody."""
    sharing = [
        other
        for other, one in config.postgres_sources.items()
        if other != name and one.publication == source.publication
    ]
    if sharing:
        return f"source {', '.join(sharing)} names it, too"
    row = connection.execute("SELECT current_database()").fetchone()
    database = row[0] if row else None
    others = sorted(
        slot.name
        for slot in slot_inventory.every(connection)
        if slot.plugin == "pgoutput" and slot.database == database
        if not slot.temporary and slot.name not in dropped
    )
    return f"slot {', '.join(others)} may read it" if others else ""


def aside_of(folder: Path) -> Path:
    """Return where a state lies while it is deleted: no source has such a name."""
    return folder.with_name(f"{folder.name}.destroyed")
