"""Looks at every source and sink: the running instance, state folders, servers.

Works whether an instance runs or not. What cannot be asked is None, and said.
"""

from collections.abc import Callable
from pathlib import Path

from walstream.config import Config, KafkaSource, PostgresSource, SqlSource
from walstream.errors import WalstreamError
from walstream.postgres.slot_health import (
    SlotHealth,
)
from walstream.state.lock import holder
from walstream.status.detached import DetachedStatus
from walstream.status.instance import running
from walstream.status.kafka import GroupSight
from walstream.status.kafka import StoredRelay as KeptRecords
from walstream.status.lookup.detached import sights
from walstream.status.lookup.kafka import kept_of as kept_of_chained
from walstream.status.lookup.kafka import look as group_of
from walstream.status.lookup.postgres import health_of, kept_of
from walstream.status.lookup.sql import kept_of as kept_of_polled
from walstream.status.model import Status
from walstream.status.observer import Workers
from walstream.status.postgres import StoredStream
from walstream.status.sql import (
    StoredPolls as KeptPolls,
)
from walstream.status.status import status_of
from walstream.status.worker_state import WorkerState
from walstream.telemetry import runtime


def look(config: Config, now: Callable[[], float] = runtime.time) -> Status:
    """Look at every source. Raises nothing that a server or a state folder does.

    But for a folder that this user may not read.
    """
    state = Path(config.state)
    instance = running(state)
    workers = instance.sources if instance else {}
    mute = holder(state) if instance is None else None
    if mute:  # a process holds the folder, and does not answer
        worker = WorkerState(silent=True, mute=mute)
        workers = dict.fromkeys(config.sources, worker)
    observer = _LookupObserver(config, instance.away if instance else {})
    return status_of(observer, instance, workers, now())


class _LookupObserver:
    """Asks state folders and servers, whatever is told."""

    def __init__(self, config: Config, detached: Workers) -> None:
        self.config = config
        self._detached = detached

    def kept(self, name: str, _told: WorkerState | None) -> StoredStream:
        return kept_of(Path(self.config.state) / name)

    def polls(self, name: str, source: SqlSource) -> KeptPolls:
        return kept_of_polled(source, Path(self.config.state) / name)

    def chained(
        self, name: str, source: KafkaSource, _told: WorkerState | None
    ) -> tuple[KeptRecords, GroupSight]:
        folder = Path(self.config.state) / name
        return kept_of_chained(folder), group_of(name, source, folder)

    def health(
        self, source: PostgresSource, _told: WorkerState | None
    ) -> tuple[SlotHealth | None, WalstreamError | None]:
        return health_of(source)

    def stale(self, _told: WorkerState | None) -> bool:
        return False

    def away(
        self, source: PostgresSource, name: str, kept: StoredStream
    ) -> dict[str, DetachedStatus]:
        return sights(source, name, kept.away, self._detached)
