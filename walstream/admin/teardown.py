"""Plan of a destroy: what a source made for itself, and what of it stays."""

import os
import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from walstream.admin.known_source import (
    Kept,
    KnownSource,
    copies_of,
    droppable,
    known_source,
    unclaimed,
)
from walstream.config import Config, PostgresSource
from walstream.config.topology import may_share_database
from walstream.errors import Repair, StateDamaged
from walstream.lsn import Lsn
from walstream.postgres import publication, quoting, slot_inventory
from walstream.postgres import server as servers
from walstream.postgres.connection import Connection, session
from walstream.postgres.server import Server
from walstream.postgres.slot_inventory import SlotFacts

_OWNED = "SELECT pubname FROM pg_publication WHERE pg_get_userbyid(pubowner) = %s"


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
def planned(
    config: Config, name: str, *, adopt: bool = False
) -> Iterator[tuple[Teardown, Connection | None]]:
    """Yield the plan, and the session that all it drops was looked at in.

    `adopt`: an operator says that the slot is the source's, though no state does.
    """
    source = config.source(name)
    folder = Path(config.state) / name
    remains = aside_of(folder)
    teardown = Teardown(
        name,
        folder=folder if folder.is_dir() else None,
        remains=remains if remains.is_dir() or remains.is_symlink() else None,
    )
    if teardown.interrupted or not isinstance(source, PostgresSource):
        yield teardown, None
        return
    known = _known(config, name, source)
    with session(source.dsn) as connection:
        plan = _plan(config, teardown, known, connection, adopt=adopt)
        yield plan, connection


def _known(config: Config, name: str, source: PostgresSource) -> KnownSource:
    """Read the state; a damaged one does not say what is to stay."""
    try:
        return known_source(Path(config.state) / name, source)
    except StateDamaged as error:
        if not error.repair:  # a newer walstream reads it
            raise
        forget = config.command(f"walstream positions reset {name} --adopt-slot")
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
    known: KnownSource,
    connection: Connection,
    *,
    adopt: bool,
) -> Teardown:
    """Plan to drop the slots that the state claims, or that an operator adopts."""
    name = teardown.source
    source = config.postgres_source(name)
    server = servers.look(connection)
    servers.refuse_standby(server)  # which has slots of its own
    _check_server(config, name, known, server)
    other = list(_other_slot(known.other_slot(source), source, adopt=adopt))
    by_sink = copies_of(Path(config.state) / name, known, source)
    copies = sorted(set(by_sink.values()))
    claimed = adopt or known.claims(source, server)
    own = [source.slot] if claimed else []
    wanted = copies if adopt or known.is_of(server) else []
    drops = droppable(connection, [*own, *wanted], server)
    strange = [] if claimed or other else [source.slot]
    if not wanted:
        strange += copies
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
        stays=[*other, *unclaimed(connection, strange), *kept],
    )


def _check_server(
    config: Config, name: str, known: KnownSource, server: Server
) -> None:
    """Refuse a server that the state is not about: its slots are another's."""
    folder = shlex.quote(str(Path(config.state) / name))
    again = config.command(f"walstream destroy {name}")
    hint = (
        "nothing was dropped. If that server no longer exists, only the state is"
        f" left: rm -r {folder} deletes it; otherwise correct the dsn of source"
        f" {name!r}, then: {again}"
    )
    repair = Repair(then=f"correct the dsn of source {name!r}, then: {again}")
    known.check_server(server, hint, repair)


def _other_slot(
    other: str | None, source: PostgresSource, *, adopt: bool
) -> Iterator[Kept]:
    if other is not None:
        why = f"the state is about slot {other}, the configuration names {source.slot}"
        for name in (other,) if adopt else (other, source.slot):
            yield Kept.slot(name, why)


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
        # one of this name is another one elsewhere
        if may_share_database(one, source, os.environ)
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
