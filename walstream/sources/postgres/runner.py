"""A postgres source, as its worker runs it: one session after the other."""

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from walstream.config import PostgresSource
from walstream.errors import ConfigError, WalstreamError
from walstream.lsn import NEVER, show
from walstream.postgres import wal_end
from walstream.postgres.slot_health import Alarm
from walstream.sources.context import SourceContext
from walstream.sources.figures import STREAM_FIGURES
from walstream.sources.postgres import requested_tables, stored_state
from walstream.sources.postgres.backfill import stored_progress
from walstream.sources.postgres.backfill.progress import BackfillProgress
from walstream.sources.postgres.backfill_messages import (
    ACCEPTED,
    REFUSED,
    BackfillMessages,
)
from walstream.sources.postgres.incremental.progress import IncrementalProgress
from walstream.sources.postgres.session import SourceSession
from walstream.sources.postgres.stream_limit import LimitWatch, limit_of
from walstream.sources.postgres.table_choice import TableChoice
from walstream.sources.report import BackfillLeft, StreamReport
from walstream.sources.stream_metrics import StreamMetrics
from walstream.telemetry import runtime
from walstream.telemetry.counts import SourceCounts

_SHOWN: Final = 100  # characters of a condition
_log = structlog.get_logger()


class PostgresRunner:
    """Makes sessions of one slot, and keeps what outlives them."""

    def __init__(self, context: SourceContext) -> None:
        source = context.config.sources[context.name]
        if not isinstance(source, PostgresSource):
            raise ConfigError(f"source {context.name!r} is not a postgres source")
        self._context = context
        self._dsn = source.dsn
        self._positions = context.positions
        alarm = Alarm(
            source.slot,
            source.alarm_retained_wal,
            runtime.monotonic,
            spill_limit=source.alarm_spill,
            may_be_synchronous=source.allow_synchronous,
        )
        kept = STREAM_FIGURES.read(context.positions)
        limit = limit_of(context.config, source)
        watch = LimitWatch(limit) if limit else None
        self._gauge = StreamMetrics(alarm, kept, limit, watch)
        self._progress = IncrementalProgress(context.positions)
        self._seen_topics: dict[str, set[str]] = {}
        self._session: SourceSession | None = None
        self._until = NEVER
        self._guard = threading.Lock()
        self._messages: Counter[str] = Counter()
        self._allowed = source.backfill_by_message
        if self._allowed:
            self._messages.update({ACCEPTED: 0, REFUSED: 0})
        self._requests = BackfillMessages(
            self._allowed, partial(self.find, replace=False, where=""), self._count
        )

    def run(self) -> bool:
        """Stream until a stop; False: its deadline cut the drain short."""
        wanted = self._context.options.until_lsn
        if wanted and self._until == NEVER:  # for good: a later session ends there too
            resuming = self._positions.position() is not None
            self._until = wal_end.resolve(self._dsn, wanted, resuming=resuming)
        self._session = SourceSession(
            self._context,
            gauge=self._gauge,
            progress=self._progress,
            seen_topics=self._seen_topics,
            until=self._until,
            hear=self._requests.take if self._allowed else None,
        )
        try:
            drained = self._session.run()
        except WalstreamError as error:
            if not error.retryable:
                self._requests.close()
            raise
        finally:
            if self._session.pipeline is not None:  # the stream was opened
                used = self._context.options.without_consents()
                self._context = replace(self._context, options=used)
        pipeline = self._session.pipeline
        # one that ended before its stream began says nothing of those before
        if drained and pipeline is not None:
            fanout = pipeline.fanout
            if fanout.proven and not fanout.leaving:
                stored_state.drained(self._positions)
        if self.ended and self._until != NEVER:
            self._session.check_delivered()
        return drained

    @property
    def ended(self) -> bool:
        return self._session is not None and self._session.ended

    @property
    def flowed(self) -> bool:
        return self._gauge.has_streamed

    @property
    def phase(self) -> str:
        if self._gauge.backfill is not None:
            return "backfilling"
        return "streaming" if self._gauge.streaming else ""

    def say_drained(self, *, drained: bool) -> None:
        """Log how a stop went, if there was a stream."""
        self._requests.close()
        pipeline = self._session.pipeline if self._session else None
        if pipeline is None:
            return
        if drained:
            _log.info("drained", lsn=show(pipeline.confirmed))
        else:
            _log.warning(
                "stopped before everything was delivered: the rest is sent again",
                records=pipeline.fanout.undelivered,
                lsn=show(pipeline.confirmed),
            )

    def report(self) -> StreamReport:
        session = self._session
        members = session.members if session else None
        record = stored_progress.read(self._positions)
        return replace(
            self._gauge.report(),
            beside=self._progress.report(),
            away=members.report() if members else {},
            backfill_record=None if record is None else _left(record),
            capture=session.capture if session else None,
            until="" if self._until == NEVER else show(self._until),
        )

    def counts(self) -> SourceCounts:
        counts = self._gauge.counts()
        rows = (counts.backfill_rows or 0) + self._progress.rows
        return replace(
            counts, backfill_rows=rows, backfill_messages=dict(self._messages)
        )

    def _count(self, result: str) -> None:
        with self._guard:
            self._messages[result] += 1

    def find(
        self, patterns: Sequence[str], *, replace: bool, where: str
    ) -> TableChoice:
        """Look for tables, and have them read; raise for what cannot be read."""
        config, name = self._context.config, self._context.name
        source = config.postgres_source(name)
        where = requested_tables.part_of(where, replace=replace)
        requested_tables.check_strict(
            config, name, source, beside=True, replace=replace
        )
        choice = requested_tables.find(source, patterns, where)
        self._ask(choice.tables, replace=replace, where=where)
        return choice

    def backfill(self, tables: Sequence[str], *, replace: bool, where: str) -> str:
        """Request that tables are read beside the stream; "" when that is on disk."""
        try:
            self._ask(tables, replace=replace, where=where)
        except WalstreamError as error:
            return str(error.args[0])
        return ""

    def _ask(self, tables: Sequence[str], *, replace: bool, where: str) -> None:
        # what was read of one that is to be replaced may be what an operator altered
        self._progress.ask(tables, replace=replace, anew=replace, where=where)


def _left(record: BackfillProgress) -> BackfillLeft:
    return BackfillLeft(
        record.lsn,
        record.tables,
        record.replace,
        record.others,
        record.rows,
        record.failed,
        {name: where[:_SHOWN] for name, where in record.where.items()},
    )
