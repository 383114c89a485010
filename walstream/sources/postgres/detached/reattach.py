"""A sink's way back into its source's stream, as far as a thread goes it."""

import threading
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Final

from walstream.errors import ConfigError, Transient
from walstream.kafka import delivery_era
from walstream.kafka.registry.stored_schema import lent
from walstream.kafka.replay_mark import sink_replay
from walstream.lsn import Lsn
from walstream.pipeline.sent_position import GIVEN, GIVEN_ELSEWHERE
from walstream.pipeline.state_document import StoredDocuments
from walstream.sources.postgres import stored_state
from walstream.sources.postgres.detached.detached_sink import (
    BACK,
    DETACHED,
    ENDED,
    JOINS,
    DetachedSink,
    HandoverPoint,
    folder_of,
)
from walstream.sources.postgres.detached.slot_copy import Home
from walstream.state.lock import FolderLock, holder
from walstream.state.store import LmdbStore
from walstream.telemetry import runtime

_WITHIN_S: Final = 15.0
_LOCK_EVERY_S: Final = 0.05


def find_near(
    home: Home, positions: LmdbStore, sinks: Iterable[str], before: Lsn
) -> str | None:
    """Name a sink whose own worker runs, and is where the source was before."""
    for sink in sinks:
        folder = folder_of(home.folder, sink)
        if holder(folder) is None:
            continue
        with LmdbStore.open_read_only(folder) as theirs:
            position = theirs.position() if theirs else None
            is_ours = theirs is not None and _is_of_one_history(positions, theirs)
        if is_ours and position is not None and position.resume >= before:
            return sink
    return None


def _is_of_one_history(positions: LmdbStore, theirs: StoredDocuments) -> bool:
    """Return whether source and worker streamed from one timeline at last.

    Else a failover came between, or goes on. What the worker says of an older timeline
    may be lost; and what it says of a newer one hides how far the source is to be
    believed. It passes with the first position that the source stores.
    """
    ours, others = GIVEN.read(positions), GIVEN.read(theirs)
    return ours is None or others is None or ours.timeline == others.timeline


@dataclass(slots=True)
class ReattachAttempt:
    """One try. The thread that does it and the loop decide together if it comes."""

    sink: str
    note: DetachedSink
    place: Lsn  # from where on the source's stream has everything for it
    work: "Future[Lsn] | None" = None
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _decided: bool | None = None  # does it come?

    def decide(self, *, comes: bool) -> bool:
        """Settle it, unless it is; tell whether it comes."""
        with self._guard:
            if self._decided is None:
                self._decided = comes
            return self._decided

    def run(self, home: Home, positions: LmdbStore) -> Lsn:
        """Make the other worker stream to `place` and end; return where it ended.

        Raises Transient when that takes too long: then nothing has changed.
        """
        deadline = runtime.monotonic() + _WITHIN_S
        positions.write(JOINS.of(self.sink).entry(HandoverPoint(self.place)))
        while self._decided is None and runtime.monotonic() < deadline:
            if (place := self._take(home, positions)) is not None:
                return place
            runtime.sleep(_LOCK_EVERY_S)
        self.decide(comes=False)
        positions.write(JOINS.of(self.sink).entry(None))
        raise Transient("its own worker did not catch up in time")

    def _take(self, home: Home, positions: LmdbStore) -> Lsn | None:
        """Take the sink over from a worker that ended where it should; None: not yet.

        Under the lock of its state: nobody else sends to it then, now or later.
        """
        folder = folder_of(home.folder, self.sink)
        lock = FolderLock(folder)
        try:
            lock.acquire(0.0)
        except ConfigError:
            return None
        try:
            with LmdbStore.open_read_only(folder) as theirs:
                ended = ENDED.read(theirs) if theirs else None
                eras = delivery_era.of_sink(theirs, self.sink) if theirs else {}
                replays = sink_replay(theirs, self.sink) if theirs else {}
                ids = lent(theirs, self.sink, ()) if theirs else {}
                # a failover may lose what the source's own stream never came to
                given = GIVEN.read(theirs) if theirs else None
                is_ours = theirs is not None and _is_of_one_history(positions, theirs)
            if ended is None or ended.at < self.place or not is_ours:
                return None  # it died on its way: it is started again
            if not self.decide(comes=True):
                return None
            note = replace(self.note, phase=BACK)
            back = DETACHED.of(self.sink).entry(note)
            gone = JOINS.of(self.sink).entry(None)
            over = delivery_era.ended(positions, self.sink)
            sent = stored_state.sent_below(positions, ended.at)
            more = GIVEN_ELSEWHERE.of(self.sink).entry(given)
            # a registry that is away by now does not tell what it told the other one
            taken = {**over, **eras, **replays, **ids, **sent, **more}
            positions.write({**taken, **back, **gone})
            return ended.at
        finally:
            lock.release()
