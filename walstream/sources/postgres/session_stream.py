"""The streams of one session: from the stored position to a stop, or to a snapshot."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial

import structlog

from walstream.errors import ConfigError, Restart
from walstream.lsn import NEVER, Lsn, show
from walstream.pipeline.commit_times import CommitTimes, TimeIndex
from walstream.pipeline.loop import Pipeline
from walstream.pipeline.ports import NamedSink, Position
from walstream.pipeline.sent_position import sent_so_far
from walstream.postgres.capture import Capture
from walstream.postgres.catalog import TableFacts
from walstream.postgres.fact_book import FactRules, NoFacts
from walstream.postgres.server import Server
from walstream.postgres.table_keys import KeyBook
from walstream.sources.postgres.backfill.reader import SnapshotDatabase
from walstream.sources.postgres.backfill.run import SnapshotBackfill
from walstream.sources.postgres.backfill.site import Site
from walstream.sources.postgres.detached.membership import SinkMembership
from walstream.sources.postgres.incremental.keyset_reader import KeysetReader
from walstream.sources.postgres.incremental.progress import IncrementalProgress
from walstream.sources.postgres.incremental.queue import (
    IncrementalBackfill as BesideBackfill,
)
from walstream.sources.postgres.incremental.threads import Threads
from walstream.sources.postgres.stream import StreamRun, StreamSpec
from walstream.state.store import LmdbStore
from walstream.telemetry.fields import LSN, SLOT

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Stage:
    """Resources that a session opened before its stream."""

    server: Server
    facts: Mapping[str, TableFacts]
    captured: Mapping[str, TableFacts]  # and what is left to backfill
    sinks: list[NamedSink]
    keys: KeyBook
    slot_start: Lsn
    facts_of_columns: FactRules = field(default_factory=NoFacts)
    messages: bool = False  # whether some sink takes logical ones


class SessionStream:
    """One stream after the other, of one session."""

    def __init__(
        self,
        site: Site,
        positions: LmdbStore,
        capture: Capture,
        progress: IncrementalProgress,
        *,
        accepts: bool,
    ) -> None:
        """With `accepts` an operator says that sinks were given no other commits."""
        self._site = site
        self._positions = positions
        self._capture = capture
        self._progress = progress
        self._accepts = accepts
        self._times: CommitTimes | None = None
        self.pipeline: Pipeline | None = None  # the last one

    @property
    def reached(self) -> bool:
        """Return True if the pipeline came to where it was to end."""
        return self.pipeline is not None and self.pipeline.reached

    def run(
        self,
        stage: Stage,
        members: SinkMembership | None,
        backfill: SnapshotBackfill,
        until: Lsn = NEVER,
    ) -> bool:
        """Stream until a stop, or `until`; False: a deadline cut the drain short.

        Up to an LSN no sink may leave: all of them get what committed below it.
        """
        flow = self._flow(stage)
        pipeline, waker = flow.pipeline, self._site.stop.waker
        threads = Threads(waker.wake)
        beside = partial(self._incremental, stage, threads, flow.source.ask, backfill)
        pipeline.let_in(beside)
        if members is not None and until == NEVER:
            members.given = flow.reach.exact
            pipeline.share(members, self._site.source.detach_after)
        _log.info("streaming", **self._from(), publications=self._capture.read)
        with closing(threads):
            return flow.run(until)

    def run_up_to(self, point: Lsn, stage: Stage) -> bool:
        """Stream what committed below; False: a stop came first."""
        flow = self._flow(stage)
        _log.info("catching up with a new snapshot", **self._from(), until=show(point))
        if not (flow.run(point) and self.reached):
            return False
        position = self._stored()
        if position.resume < point and self._times is not None:
            times = self._times.documents(point)
            self._positions.store(replace(position, resume=point), times)
        return True

    def _flow(self, stage: Stage) -> StreamRun:
        site, position = self._site, self._stored()
        self._times = CommitTimes(
            TimeIndex.of(self._positions),
            resume=position.resume,
            retain=site.source.retain,
            slot_start=stage.slot_start,
        )
        spec = StreamSpec(
            name=site.name,
            source=site.source,
            server=stage.server,
            position=position,
            slot_start=stage.slot_start,
            retain=site.source.retain,
            capture=self._capture,
            keys=stage.keys,
            facts=stage.facts_of_columns,
            sinks=stage.sinks,
            messages=stage.messages or site.hear is not None,
            given=sent_so_far(self._positions),
            positions=self._positions,
            accepts=self._accepts,
            heartbeat=site.source.heartbeat,
            times=self._times,
        )
        flow = StreamRun(spec, site.gauge, site.stop)
        self.pipeline = flow.pipeline
        if site.hear is not None:
            flow.pipeline.messages.listener = site.hear
        return flow

    def _stored(self) -> Position:
        position = self._positions.position()
        if position is None:
            raise ConfigError(f"source {self._site.name!r} has no position: a defect")
        return position

    def _from(self) -> dict[str, str]:
        position = self._stored()
        return {SLOT: position.slot, LSN: show(position.resume)}

    def _incremental(
        self,
        stage: Stage,
        threads: Threads,
        ask: Callable[[], None],
        backfill: SnapshotBackfill,
    ) -> BesideBackfill:
        """Return what reads tables beside the stream, now that all sinks are in it."""
        if backfill.pending:
            raise Restart("all sinks are back: the waiting backfill begins")
        reader = KeysetReader(
            SnapshotDatabase(self._site.source.dsn),
            lambda: self._capture.read,
            facts=not isinstance(stage.facts_of_columns, NoFacts),
        )
        return BesideBackfill(reader, self._progress, threads, ask)
