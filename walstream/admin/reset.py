"""Reset of a source: position and slot; the next run starts from scratch."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from walstream.config import Config, PostgresSource
from walstream.errors import HistoryError, SlotLost, StateDamaged, Transient
from walstream.kafka.stored_topic import TOPICS, StoredTopic
from walstream.lsn import show
from walstream.postgres import publication
from walstream.postgres import server as servers
from walstream.postgres import slot as slots
from walstream.postgres.connection import Connection, session
from walstream.postgres.server import Server
from walstream.postgres.slot import Slot
from walstream.postgres.slot_inventory import released
from walstream.postgres.start_table import StoredState, check_ours, decide
from walstream.sources.epoch import EPOCH, EpochNumber, epoch_of
from walstream.sources.postgres.detached import slot_copy
from walstream.sources.postgres.detached.detached_sink import DETACHED
from walstream.sources.postgres.detached.slot_copy import Home
from walstream.sources.postgres.stored_state import INTENT, stored_of
from walstream.state import lmdb_check
from walstream.state.control import lent
from walstream.state.lmdb_environment import discard
from walstream.state.lock import FolderLock
from walstream.state.store import LmdbStore
from walstream.telemetry import runtime

_ANEW: Final = "anew"  # a folder in the source's: what will stand in its state's place


@dataclass(frozen=True, slots=True)
class KnownSource:
    """Undamaged part of a source's state."""

    stored: StoredState = StoredState()  # noqa: RUF009 - frozen
    slot: str | None = None  # that it is about
    epoch: int | None = None  # None: lost with the state
    # by sink that may have a copy of the slot: the copy, as it was noted
    away: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, StoredTopic] = field(default_factory=dict)

    def other_slot(self, source: PostgresSource) -> str | None:
        """Name the slot that the state is about, where the source names another.

        Then neither is dropped: one may be another's, the other still of use.
        """
        return self.slot if self.slot not in {None, source.slot} else None


def reset(config: Config, name: str, consent: Callable[[str], bool]) -> str:
    """Drop the slot, forget the position; give what was done, in a sentence.

    `consent` is asked with what will be lost, before anything is stopped: a running
    instance lends the source, and starts from scratch. If the server's history changed,
    or may have, the source's epoch grows: its consumers have to agree.
    """
    source = config.postgres_source(name)
    folder = Path(config.state) / name
    at, other = _look(folder, source)
    with session(source.dsn) as connection:
        server = servers.look(connection)  # is it there at all?
        if other is None:
            _check_ours(connection, source, server)
        stays = _staying(connection, source)
    left = other and _left(config, name, source, other)
    lost = "changes from there to the next start will be missing in Kafka"
    dropped = f", and slot {source.slot!r} is dropped"
    ending = f". {left}" if left else ""
    if not consent(
        f"Source {name!r} ({at}) forgets its position{'' if left else dropped}:"
        f" {lost}{ending or '.'}"
    ):
        return "nothing was changed"
    with lent(config, name) as running:
        _reset(folder, name, source, other)
    begins = (
        ", and starts from scratch" if running else "; the next run starts from scratch"
    )
    return f"source {name!r} is reset{begins}{ending}{stays}"


def _staying(connection: Connection, source: PostgresSource) -> str:
    """Name the publications: whoever gives the source up drops them, too."""
    both = source.publication, publication.insert_only(source.publication)
    names = list(publication.find(connection, both))
    if not names:
        return ""
    stays = "publications stay" if len(names) > 1 else "publication stays"
    return f"\nIts {stays}: {', '.join(names)}"


def _look(folder: Path, source: PostgresSource) -> tuple[str, str | None]:
    """Return where a source is, before anything is stopped, and name another slot."""
    try:
        with LmdbStore.open_read_only(folder) as positions:
            known = _known(positions, source) if positions else KnownSource()
    except StateDamaged:
        return "its state is damaged", None
    position = known.stored.position
    at = show(position.resume) if position else "no position"
    return at, known.other_slot(source)


def _left(config: Config, name: str, source: PostgresSource, other: str) -> str:
    drop = config.command(f"walstream slots drop {other} --source {name}")
    return (
        f"It was at slot {other!r}, and now names {source.slot!r}: neither slot is "
        f"dropped. If the old one is no longer needed: {drop}"
    )


def _check_ours(connection: Connection, source: PostgresSource, server: Server) -> None:
    if (slot := slots.find(connection, source.slot)) is not None:
        check_ours(slot, server)


def _reset(folder: Path, name: str, source: PostgresSource, other: str | None) -> None:
    """Do it under one lock: no worker begins on what is about to go."""
    lock = FolderLock(folder)
    lock.acquire()
    try:
        known = believed(folder, source)
        if known.other_slot(source) != other:
            raise Transient(
                f"the state of source {name!r} changed meanwhile: nothing was done",
                hint="reset it again",
            )
        with session(source.dsn) as connection:
            _replace(folder, name, source, known, connection)
    finally:
        lock.release()


def _replace(
    folder: Path,
    name: str,
    source: PostgresSource,
    known: KnownSource,
    connection: Connection,
) -> None:
    server = servers.look(connection)
    drops = known.other_slot(source) is None
    find = released if drops else slots.find
    slot = find(connection, source.slot)
    if slot is not None and drops:
        check_ours(slot, server)
    epoch = known.epoch
    if epoch is None:
        epoch = int(runtime.time())  # above any that was counted
    elif _history_changed(name, known.stored, slot, server):
        epoch += 1
    anew = folder / _ANEW
    discard(anew)  # what a crash left
    with LmdbStore(anew) as positions:
        # older records stay in their partitions: a reader meets them with those to come
        documents = EPOCH.entry(EpochNumber(epoch))
        for topic, found in known.topics.items():
            documents |= TOPICS.of(topic).entry(found)
        positions.write(documents)
    if drops:
        slots.drop(connection, source.slot)
        slot_copy.drop_all(Home(name, source.dsn, source.slot, folder), known.away)
    # never without the epoch, and under the lock that an open of its own would need
    (anew / "data.mdb").replace(folder / "data.mdb")
    (folder / "lock.mdb").unlink(missing_ok=True)
    shutil.rmtree(anew)


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


def believed(folder: Path, source: PostgresSource) -> KnownSource:
    """Read under the lock; a damaged state says nothing."""
    try:
        lmdb_check.check(folder / "data.mdb")
        return known_source(folder, source)
    except (StateDamaged, lmdb_check.Broken):
        return KnownSource()


def known_source(folder: Path, source: PostgresSource) -> KnownSource:
    """Read a source's state; raise StateDamaged for one that cannot be believed."""
    with LmdbStore.open_read_only(folder) as positions:
        if positions is None:
            return KnownSource(epoch=0)
        positions.check_format()
        return _known(positions, source)


def _known(positions: LmdbStore, source: PostgresSource) -> KnownSource:
    stored = stored_of(positions, source.slot)
    position = stored.position
    about = position or INTENT.read(positions)
    return KnownSource(
        stored,
        slot=about.slot if about else None,
        epoch=epoch_of(positions),
        away={sink: one.slot for sink, one in DETACHED.read_all(positions).items()},
        topics=TOPICS.read_all(positions),
    )
