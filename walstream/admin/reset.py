"""Reset of a source: position and slot; the next run starts from scratch."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from walstream.admin.known_source import (
    Kept,
    KnownSource,
    believed,
    copies_of,
    droppable,
    known_in,
    unclaimed,
)
from walstream.config import Config, PostgresSource
from walstream.errors import HistoryError, Repair, SlotLost, StateDamaged, Transient
from walstream.kafka.stored_topic import TOPICS
from walstream.lsn import show
from walstream.postgres import publication
from walstream.postgres import server as servers
from walstream.postgres import slot as slots
from walstream.postgres.connection import Connection, session
from walstream.postgres.server import Server
from walstream.postgres.slot import Slot
from walstream.postgres.start_table import StoredState, check_ours, decide
from walstream.sources.epoch import EPOCH, EpochNumber
from walstream.sources.postgres.detached import slot_copy
from walstream.sources.postgres.detached.slot_copy import Home
from walstream.state.control import lent
from walstream.state.lmdb_environment import discard
from walstream.state.lock import FolderLock
from walstream.state.store import LmdbStore
from walstream.telemetry import runtime

_ANEW: Final = "anew"  # a folder in the source's: what will stand in its state's place


@dataclass(frozen=True, slots=True)
class _Seen:
    """Facts that a reset goes by, from before anything is stopped."""

    name: str  # of the source
    at: str  # where it is
    other: str | None  # slot that the state is about, where the source names another
    claims: bool  # is the source's slot one of its own?


def reset(
    config: Config, name: str, consent: Callable[[str], bool], *, adopt: bool = False
) -> str:
    """Drop the slot, forget the position; give what was done, in a sentence.

    A slot that no state claims stays, unless `adopt` says that it is the source's.
    `consent` is asked with what will be lost, before anything is stopped: a running
    instance lends the source, and starts from scratch. If the server's history changed,
    or may have, the source's epoch grows: its consumers have to agree.
    """
    source = config.postgres_source(name)
    folder = Path(config.state) / name
    at, known = _look(folder, source)
    with session(source.dsn) as connection:
        server = servers.look(connection)  # is it there at all?
        claims = adopt or known.claims(source, server)
        seen = _Seen(name, at, known.other_slot(source), claims)
        _check(connection, source, server, known, seen)
        stays = _staying(connection, source)
    left = _left(config, name, source, seen) if seen.other else ""
    lost = "changes from there to the next start will be missing in Kafka"
    dropped = f", and slot {source.slot!r} is dropped" if seen.claims else ""
    ending = f". {left}" if left else ""
    if not consent(
        f"Source {name!r} ({at}) forgets its position{dropped}: {lost}{ending or '.'}"
    ):
        return "nothing was changed"
    with lent(config, name) as running:
        kept = _reset(config, name, source, seen)
    begins = (
        ", and starts from scratch" if running else "; the next run starts from scratch"
    )
    return f"source {name!r} is reset{begins}{ending}{kept}{stays}"


def _check(
    connection: Connection,
    source: PostgresSource,
    server: Server,
    known: KnownSource,
    seen: _Seen,
) -> None:
    """Refuse a server whose slot is not to be dropped, whatever the state is about."""
    servers.refuse_standby(server)
    slot = slots.find(connection, source.slot)
    if slot is None:
        return
    if seen.claims:
        check_ours(slot, server)
    elif seen.other is None:
        drop = f"walstream slots drop {source.slot} --source {seen.name}"
        hint = (
            f"nothing was done. Correct the dsn; or, if slot {source.slot!r} of this"
            f" server is no longer needed, drop it: {drop}; then reset the source"
        )
        known.check_server(server, hint, Repair(command=drop))


def _staying(connection: Connection, source: PostgresSource) -> str:
    """Name the publications: whoever gives the source up drops them, too."""
    both = source.publication, publication.insert_only(source.publication)
    names = list(publication.find(connection, both))
    if not names:
        return ""
    stays = "publications stay" if len(names) > 1 else "publication stays"
    return f"\nIts {stays}: {', '.join(names)}"


def _look(folder: Path, source: PostgresSource) -> tuple[str, KnownSource]:
    """Read where a source is, and of what its state is, before anything is stopped."""
    try:
        with LmdbStore.open_read_only(folder) as positions:
            known = known_in(positions, source) if positions else KnownSource()
    except StateDamaged:
        return "its state is damaged", KnownSource()
    position = known.stored.position
    return show(position.resume) if position else "no position", known


def _left(config: Config, name: str, source: PostgresSource, seen: _Seen) -> str:
    drop = config.command(f"walstream slots drop {seen.other} --source {name}")
    dropped = "the old one is not" if seen.claims else "neither slot is"
    return (
        f"It was at slot {seen.other!r}, and now names {source.slot!r}: {dropped}"
        f" dropped. If the old one is no longer needed: {drop}"
    )


def _reset(config: Config, name: str, source: PostgresSource, seen: _Seen) -> str:
    """Do it under one lock: no worker begins on what is about to go. Say what stays."""
    folder = Path(config.state) / name
    lock = FolderLock(folder)
    lock.acquire()
    try:
        known = believed(folder, source)
        if known.other_slot(source) != seen.other:
            raise Transient(
                f"the state of source {name!r} changed meanwhile: nothing was done",
                hint="reset it again",
            )
        with session(source.dsn) as connection:
            kept = _replace(folder, source, known, connection, seen)
    finally:
        lock.release()
    if not kept:
        return ""
    again = config.command(f"walstream positions reset {name} --adopt-slot")
    said = [f"\n{one.what} stays: {one.why}\n    SQL> {one.sql}" for one in kept]
    return f"{''.join(said)}\nIf it is the source's own: {again}"


def _replace(
    folder: Path,
    source: PostgresSource,
    known: KnownSource,
    connection: Connection,
    seen: _Seen,
) -> list[Kept]:
    """Put another state in the place of this one; return the slots that stay."""
    server = servers.look(connection)
    _check(connection, source, server, known, seen)
    own = [source.slot] if seen.claims else []
    copies = copies_of(folder, known, source) if seen.other is None else {}
    # each is looked at before the first is dropped
    drops = droppable(connection, [*own, *(copies.values() if own else ())], server)
    strange = [] if own or seen.other else [source.slot, *copies.values()]
    kept = unclaimed(connection, strange)
    slot = slots.find(connection, source.slot)
    epoch = known.epoch
    if epoch is None:
        epoch = int(runtime.time())  # above any that was counted
    elif _history_changed(seen.name, known.stored, slot, server):
        epoch += 1
    anew = folder / _ANEW
    discard(anew)  # what a crash left
    with LmdbStore(anew) as positions:
        # older records stay in their partitions: a reader meets them with those to come
        documents = EPOCH.entry(EpochNumber(epoch))
        for topic, found in known.topics.items():
            documents |= TOPICS.of(topic).entry(found)
        positions.write(documents)
    for one in drops:
        slots.drop(connection, one)
    if own:
        home = Home(seen.name, source.dsn, source.slot, folder)
        for sink, copy in copies.items():
            slot_copy.drop(home, sink, copy)
    # never without the epoch, and under the lock that an open of its own would need
    (anew / "data.mdb").replace(folder / "data.mdb")
    (folder / "lock.mdb").unlink(missing_ok=True)
    shutil.rmtree(anew)
    return kept


def _history_changed(
    name: str, stored: StoredState, slot: Slot | None, server: Server
) -> bool:
    """Return whether LSNs from before the reset are meaningless now.

    A slot that is gone leaves a gap in the same history.
    """
    if stored.position is not None and stored.position.timeline != server.timeline:
        return True
    try:
        decide(name, stored, slot, server, adopt=True)
    except SlotLost:
        return False
    except HistoryError:
        return True
    return False
