"""Facts of a source's state: the slots that it claims, and what outlives a reset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from walstream.config import PostgresSource
from walstream.config.source import slot_copy
from walstream.errors import Repair, StateDamaged
from walstream.kafka.stored_topic import TOPICS, StoredTopic
from walstream.lsn import show
from walstream.pipeline.ports import Position
from walstream.postgres import quoting
from walstream.postgres import slot as slots
from walstream.postgres.connection import Connection
from walstream.postgres.server import Server
from walstream.postgres.slot_inventory import released
from walstream.postgres.start_table import StoredState, check_ours, check_server
from walstream.sources.epoch import epoch_of
from walstream.sources.postgres.detached.detached_sink import DETACHED
from walstream.sources.postgres.stored_state import INTENT, SlotIntent, stored_of
from walstream.state import lmdb_check
from walstream.state.store import LmdbStore

UNCLAIMED = "the state has no record of it"


@dataclass(frozen=True, slots=True)
class Kept:
    """A publication or slot that stays, and why."""

    what: str
    why: str
    sql: str = ""  # what drops it

    @classmethod
    def slot(cls, name: str, why: str) -> "Kept":
        """Return one of a slot."""
        drop = f"SELECT pg_drop_replication_slot({quoting.text(name)});"
        return cls(f"slot {name}", why, drop)


@dataclass(frozen=True, slots=True)
class KnownSource:
    """Undamaged part of a source's state."""

    stored: StoredState = StoredState()  # noqa: RUF009 - frozen
    intent: SlotIntent | None = None
    epoch: int | None = None  # None: lost with the state
    # by sink that may have a copy of the slot: the copy, as it was noted
    away: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, StoredTopic] = field(default_factory=dict)

    @property
    def about(self) -> Position | SlotIntent | None:
        """Return what says of which slot of which server it is."""
        return self.stored.position or self.intent

    @property
    def slot(self) -> str | None:
        """Name the slot that it is about."""
        return self.about.slot if self.about else None

    def other_slot(self, source: PostgresSource) -> str | None:
        """Name the slot that the state is about, where the source names another.

        Then neither is dropped: one may be another's, the other still of use.
        """
        return self.slot if self.slot not in {None, source.slot} else None

    def is_of(self, server: Server) -> bool:
        """Return whether it is about a slot of this server, in this database."""
        about = self.about
        return about is not None and (about.system_identifier, about.database) == (
            server.system_identifier,
            server.database,
        )

    def claims(self, source: PostgresSource, server: Server) -> bool:
        """Return whether the slot that the source names is the one it is about."""
        return self.slot == source.slot and self.is_of(server)

    def check_server(self, server: Server, hint: str, repair: Repair) -> None:
        """Refuse a server, or a database, that it is not about."""
        if (position := self.stored.position) is not None:
            what = f"the position {show(position.resume)}"
            check_server(position, what, server, hint, repair)
        elif self.intent is not None and self.intent.system_identifier:
            what = f"the slot {self.intent.slot!r} of the first start"
            check_server(self.intent, what, server, hint, repair)


def copies_of(
    folder: Path, known: KnownSource, source: PostgresSource
) -> dict[str, str]:
    """Name the slots of detached sinks, by sink, whatever the source's is named now.

    Without its sink's state, which goes, no reader can use one.
    """
    about = known.slot or source.slot
    found = dict(known.away)
    for one in (folder / "away").glob("*/"):
        if one.name not in found:
            found[one.name] = _slot_in(one) or slot_copy(about, one.name)
    kept = {about, source.slot}
    return {sink: slot for sink, slot in sorted(found.items()) if slot not in kept}


def _slot_in(folder: Path) -> str | None:
    """Read which slot the state of a detached sink is about."""
    try:
        with LmdbStore.open_read_only(folder) as positions:
            position = positions.position() if positions else None
    except StateDamaged:
        return None
    return position.slot if position else None


def droppable(
    connection: Connection, names: Sequence[str], server: Server
) -> list[str]:
    """Return those that exist; refuse one that is read, or that another made."""
    found = []
    for name in names:
        if (slot := released(connection, name)) is not None:
            check_ours(slot, server)
            found.append(name)
    return found


def unclaimed(connection: Connection, names: Sequence[str]) -> list[Kept]:
    """Return those that exist as what stays, since no state says whose they are."""
    return [
        Kept.slot(name, UNCLAIMED)
        for name in names
        if slots.find(connection, name) is not None
    ]


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
        return known_in(positions, source)


def known_in(positions: LmdbStore, source: PostgresSource) -> KnownSource:
    """Read what an open state says."""
    return KnownSource(
        stored_of(positions, source.slot),
        intent=INTENT.read(positions),
        epoch=epoch_of(positions),
        away={sink: one.slot for sink, one in DETACHED.read_all(positions).items()},
        topics=TOPICS.read_all(positions),
    )
