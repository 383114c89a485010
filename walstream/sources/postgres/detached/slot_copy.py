"""A copy of a source's slot, and the state of who streams from it."""

import contextlib
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from walstream.config import Config
from walstream.config.source import slot_copy
from walstream.errors import Transient
from walstream.kafka import delivery_era, stored_topic
from walstream.kafka.replay_mark import sink_replay
from walstream.pipeline.sent_position import GIVEN, GIVEN_ELSEWHERE, Given
from walstream.postgres import slot as slots
from walstream.postgres.connection import session
from walstream.postgres.publication_memory import PUBLICATIONS
from walstream.sources.epoch import EPOCH
from walstream.sources.postgres.detached.detached_sink import DetachedSink, folder_of
from walstream.state.lmdb_environment import discard
from walstream.state.lock import FolderLock
from walstream.state.store import LmdbStore


@dataclass(frozen=True, slots=True)
class Home:
    """The source that a sink leaves, and comes back to."""

    source: str
    dsn: str
    slot: str
    folder: Path  # of its state
    failover: bool = False

    @classmethod
    def of(cls, config: Config, name: str) -> "Home":
        """Return where a source of the configuration is."""
        source = config.postgres_source(name)
        folder = Path(config.state) / name
        return cls(name, source.dsn, source.slot, folder, source.failover)

    def copy_of(self, sink: str) -> str:
        """Name the copy of its slot."""
        return slot_copy(self.slot, sink)


def forgotten(home: Home, sinks: Iterable[str]) -> list[str]:
    """Return the copies of sinks that are in the stream, and that nobody reads.

    One that is read is another instance's, which this one may wait for.
    """
    with session(home.dsn) as connection:
        found = [slots.find(connection, home.copy_of(sink)) for sink in sinks]
    return [one.name for one in found if one is not None and one.active_pid is None]


def check_free(home: Home, slot: str) -> None:
    """Raise Transient for a slot of that name that is not ours."""
    with session(home.dsn) as connection:
        if slots.find(connection, slot) is not None:
            raise Transient(
                f"slot {slot!r} exists, and walstream did not create it",
                hint=f"if it is not needed: walstream slots drop {slot}",
            )


def make(
    home: Home,
    positions: LmdbStore,
    sink: str,
    note: DetachedSink,
    given: Given | None,
) -> None:
    """Copy the slot; keep for the sink what the source knows, and its own resume.

    It was `given` no commit beyond: a failover may lose the last ones.
    What an attempt before left is dropped. The copy begins where the source's slot is
    confirmed, which no sink of it has not passed.
    """
    with session(home.dsn) as connection:
        slots.drop(connection, note.slot)
        slots.copy(connection, home.slot, note.slot)
    if home.failover:
        slots.let_fail_over(home.dsn, note.slot)
    position = positions.position()
    if position is None:
        raise Transient(f"source {home.source!r} has no position yet")
    topics = positions.names(stored_topic.document_of(sink, "").name)
    names = [PUBLICATIONS.name, EPOCH.name, *topics]
    documents = {name: positions.read(name) for name in names}
    # of one that had just come back, its last worker may have been ahead of the stream
    before = GIVEN_ELSEWHERE.of(sink).read(positions)
    if given is not None and before is not None:
        given = given.joined(before)
    documents |= GIVEN.entry(given or before)
    documents |= delivery_era.of_sink(positions, sink)
    documents |= sink_replay(positions, sink)
    own = replace(position, resume=note.resume, slot=note.slot)
    folder = folder_of(home.folder, sink)
    discard(folder)
    with LmdbStore(folder) as theirs:
        theirs.store(own, documents)


def drop(home: Home, sink: str, slot: str) -> None:
    """Drop the copy, and forget what was kept of it; none there is fine."""
    with session(home.dsn) as connection:
        slots.drop(connection, slot)
    folder = folder_of(home.folder, sink)
    if folder.is_dir():
        lock = FolderLock(folder)
        lock.acquire()
        try:
            discard(folder)
        finally:  # who tries again needs it
            lock.release()
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
