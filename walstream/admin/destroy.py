"""Giving a source up: its slot, its publications and its state are dropped, in order.

The state goes last: after a crash in between, the same command finds what is left.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from walstream.admin.reset import believed
from walstream.config import Config, PostgresSource
from walstream.errors import ConfigError, StateDamaged, Transient
from walstream.lsn import Lsn
from walstream.postgres import publication, quoting, slot_inventory
from walstream.postgres import server as servers
from walstream.postgres import slot as slots
from walstream.postgres.connection import Connection, session
from walstream.postgres.slot_inventory import SlotFacts, released
from walstream.postgres.start_table import check_ours
from walstream.sources.postgres.detached import slot_copy
from walstream.sources.postgres.detached.detached_sink import DETACHED
from walstream.sources.postgres.detached.slot_copy import Home
from walstream.state.lock import FolderLock, holder
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
    server: str = ""  # "": the source has none
    slot: SlotFacts | None = None
    copies: Sequence[str] = ()  # slots of detached sinks
    publications: Sequence[str] = ()
    position: Lsn | None = None
    folder: Path | None = None  # of its state, if it exists
    topics: Sequence[str] = ()  # that the state names
    stays: Sequence[Kept] = ()

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to drop."""
        return not (self.slot or self.copies or self.publications or self.folder)


def destroy(
    config: Config, name: str, consent: Callable[[Teardown], bool]
) -> Teardown | None:
    """Drop all that a source made for itself; return what was dropped.

    `consent` is asked first; None: it refused. Raises Transient while an instance runs
    on the state, or another one reads the slot. A second call finds nothing to drop.
    """
    source = config.source(name)
    state = Path(config.state)
    _refuse_running(state, name)
    postgres = source if isinstance(source, PostgresSource) else None
    teardown = _plan(config, name, postgres)
    if teardown.empty:
        return teardown
    if not consent(teardown):
        return None
    lock = FolderLock(state)
    lock.acquire()
    try:
        if postgres is not None:
            _drop(config, name, postgres, teardown)
        _forget(state / name)
    finally:
        lock.release()
    return teardown


def _refuse_running(state: Path, name: str) -> None:
    if (process := holder(state)) is not None:
        raise Transient(
            f"walstream runs on this state as process {process}: source {name!r} cannot"
            " be destroyed under it",
            hint=f"stop it first: kill {process}",
        )


def _plan(config: Config, name: str, source: PostgresSource | None) -> Teardown:
    folder = Path(config.state) / name
    if source is None:
        return Teardown(name, folder=folder if folder.is_dir() else None)
    known = believed(folder, source)
    with session(source.dsn) as connection:
        server = servers.look(connection)
        stays = list(_other_slot(known.other_slot(source), source))
        slot = None
        if not stays:
            slot = slot_inventory.find(connection, source.slot)
            if (found := released(connection, source.slot)) is not None:
                check_ours(found, server)
        copies = _copies(connection, Home.of(config, name), known.away)
        drops, kept = _publications(config, name, source, connection, server.role)
        connected = f"PostgreSQL {server.version // 10000}, database {server.database}"
    position = known.stored.position
    return Teardown(
        name,
        server=connected,
        slot=slot,
        copies=copies,
        publications=drops,
        position=position.resume if position else None,
        folder=folder if folder.is_dir() else None,
        topics=sorted({one.partition("/")[2] for one in known.topics}),
        stays=[*stays, *kept],
    )


def _other_slot(other: str | None, source: PostgresSource) -> Iterator[Kept]:
    if other is not None:
        why = f"the state is about slot {other}, the configuration names {source.slot}"
        for name in (other, source.slot):
            yield Kept(
                f"slot {name}",
                why,
                f"SELECT pg_drop_replication_slot({quoting.text(name)});",
            )


def _copies(connection: Connection, home: Home, away: frozenset[str]) -> list[str]:
    """Name the slots of detached sinks that exist."""
    folders = {folder.name for folder in (home.folder / "away").glob("*/")}
    names = (home.copy_of(sink) for sink in sorted(folders | away))
    return [name for name in names if slots.find(connection, name) is not None]


def _publications(
    config: Config,
    name: str,
    source: PostgresSource,
    connection: Connection,
    role: str,
) -> tuple[list[str], list[Kept]]:
    """Return those that walstream made for this source alone, and the others."""
    both = source.publication, publication.insert_only(source.publication)
    found = publication.find(connection, both)
    owned = {row[0] for row in connection.execute(_OWNED, (role,)).fetchall()}
    readers = _readers(config, name, source, connection)
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
    config: Config, name: str, source: PostgresSource, connection: Connection
) -> str:
    """Return who else may read the publications; "": nobody."""
    sharing = [
        other
        for other, one in config.postgres_sources.items()
        if other != name and one.publication == source.publication
    ]
    if sharing:
        return f"source {', '.join(sharing)} names it, too"
    mine = {source.slot, *_copies(connection, Home.of(config, name), frozenset())}
    row = connection.execute("SELECT current_database()").fetchone()
    database = row[0] if row else None
    others = sorted(
        slot.name
        for slot in slot_inventory.every(connection)
        if slot.plugin == "pgoutput" and slot.database == database
        if not slot.temporary and slot.name not in mine
    )
    return f"slot {', '.join(others)} may read it" if others else ""


def _drop(
    config: Config, name: str, source: PostgresSource, teardown: Teardown
) -> None:
    """Drop what the server has; the slot first, since it holds WAL."""
    home = Home.of(config, name)
    with session(source.dsn) as connection:
        if teardown.slot is not None:
            released(connection, source.slot)
            slots.drop(connection, source.slot)
        slot_copy.drop_all(home, _detached(home.folder))
        for one in teardown.publications:
            statement = f"DROP PUBLICATION IF EXISTS {quoting.name(one)};"
            publication.execute(connection, statement)


def _detached(folder: Path) -> frozenset[str]:
    """Name the sinks that are noted as detached, as far as the state can be read."""
    try:
        with LmdbStore.open_read_only(folder) as positions:
            return frozenset(DETACHED.keys(positions)) if positions else frozenset()
    except StateDamaged:
        return frozenset()


def _forget(folder: Path) -> None:
    """Delete a source's part of the state; none there is fine."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(
            f"the state folder {folder} cannot be deleted: {error.strerror}",
            hint="delete it yourself: the rest is done",
        ) from None
