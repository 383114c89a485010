"""Status of every source and sink, from its instance and `StatusObserver`: pure.

What nobody knows is None, and said.
"""

from datetime import UTC, datetime
from typing import Final

from walstream.config import (
    Config,
    KafkaSource,
    PackageSource,
    PostgresSource,
    Source,
    SqlSource,
)
from walstream.config.risk import risks
from walstream.lsn import show
from walstream.postgres.capture_report import CaptureReport
from walstream.postgres.slot_health import SlotHealth
from walstream.sources.postgres.backfill.status import backfill_status
from walstream.sources.postgres.backfill.status import problems as backfill_problems
from walstream.sources.report import (
    ErrorReport,
    RelayReport,
    SinkReport,
    StreamReport,
)
from walstream.status.instance import Instance
from walstream.status.kafka import ChainedState
from walstream.status.model import (
    CaptureLimitStatus,
    LastError,
    SinkStatus,
    SlotStatus,
    SourceStatus,
    Status,
    TableBackfill,
)
from walstream.status.observer import ReportObserver, StatusObserver, Workers
from walstream.status.postgres import PostgresState, parked_problems
from walstream.status.snapshot import InstanceSnapshot
from walstream.status.sql import PolledState, waits_for_another
from walstream.status.worker_state import WAITS, WorkerState, problems_of, state_of
from walstream.telemetry.tally import Counts, totals

_GONE: Final = frozenset({"detached", "dropped"})  # from the source's stream
_FLOWING: Final = frozenset({"streaming", "polling", "backfilling"})


def of_run(config: Config, snapshot: InstanceSnapshot) -> Status:
    """Return what the running instance knows: no server is asked, no folder."""
    running = snapshot.running
    return status_of(
        ReportObserver(config, running.away), running, running.sources, snapshot.at
    )


def status_of(
    observer: StatusObserver, running: Instance | None, workers: Workers, at: float
) -> Status:
    """Return how all sources are, by a running instance and by `observer`."""
    sources = [
        _look_at(observer, name, source, workers.get(name), at)
        for name, source in sorted(observer.config.sources.items())
    ]
    return Status(
        at=_time(at),
        pid=running.pid if running else None,
        started_at=_time(running.started_at) if running else None,
        exit_code=max((source.exit_code for source in sources), default=0),
        sources=sources,
    )


def _look_at(
    observer: StatusObserver,
    name: str,
    source: Source,
    told: WorkerState | None,
    now: float,
) -> SourceStatus:
    if isinstance(source, SqlSource):
        return _look_at_polled(observer, name, source, told)
    if isinstance(source, PackageSource):
        return _look_at_added(observer, name, source, told)
    if isinstance(source, KafkaSource):
        return _look_at_chained(observer, name, source, told)
    config = observer.config
    kept = observer.kept(name, told)
    health, unreachable = observer.health(source, told)
    seen = PostgresState(source, kept, told, health, unreachable, observer.stale(told))
    state, exit_code = seen.state()
    away = observer.away(source, name, kept)
    if seen.alarm or seen.spill_alarm or seen.synchronous or away:
        exit_code = exit_code or WAITS
    given_up = backfill_problems(name, kept.backfill)
    report = seen.report or StreamReport()
    capture = report.capture or CaptureReport()
    problems = [*seen.problems(state), *map(config.command, given_up)]
    problems += [sight.problem(sink) for sink, sight in away.items()]
    return SourceStatus(
        name=name,
        kind=source.kind,
        state=state,
        exit_code=exit_code,
        problems=list(dict.fromkeys(map(config.secrets.scrub, problems))),
        resume=show(seen.resume) if seen.resume else None,
        server_lsn=show(health.flush_lsn) if health else None,
        lag_bytes=seen.lag_bytes,
        lag_s=seen.lag_s(now),
        ops=seen.figures.ops,
        delivered=seen.figures.delivered,
        ops_per_s=report.ops_per_s,
        delivered_per_s=report.delivered_per_s,
        slot=_slot(source, health),
        backfill=backfill_status(kept.backfill, report.backfill),
        last_error=_last_error(config, seen.error),
        risks=list(risks(source).values()),
        sinks=[
            _sink(
                config,
                sink,
                away[sink].state if sink in away else state,
                told,
                seen.kept.figures.sinks.get(sink),
            )
            for sink in source.sinks
        ],
        beside={
            table: TableBackfill(
                how.rows,
                how.state,
                config.secrets.scrub(how.error),
                how.remark,
                config.secrets.scrub(how.where),
            )
            for table, how in seen.beside.items()
        },
        publications=list(capture.publications),
        limits={
            name: CaptureLimitStatus(limit.reason, limit.sql)
            for name, limit in capture.limits.items()
        },
        more_limits=capture.more,
        held_by=report.held_by,
    )


def _look_at_polled(
    observer: StatusObserver, name: str, source: SqlSource, told: WorkerState | None
) -> SourceStatus:
    config = observer.config
    seen = PolledState(source, observer.polls(name, source), told)
    state, exit_code = seen.state()
    tables = seen.tables()
    rows = sum(table.rows for table in tables.values())
    rates = [one.rows_per_s for one in tables.values() if one.rows_per_s is not None]
    rows_per_s = sum(rates) if rates else None
    scrub = config.secrets.scrub
    return SourceStatus(
        name=name,
        kind=source.kind,
        state=state,
        exit_code=exit_code,
        problems=[scrub(problem) for problem in seen.problems(state)],
        resume=None,
        server_lsn=None,
        lag_bytes=None,
        lag_s=None,
        ops=rows,
        delivered=rows,
        ops_per_s=rows_per_s,
        delivered_per_s=rows_per_s,
        slot=None,
        backfill=None,
        last_error=_last_error(config, seen.error),
        risks=list(risks(source).values()),
        sinks=[_sink(config, sink, state, told) for sink in source.sinks],
        tables=tables,
    )


def _look_at_added(
    observer: StatusObserver, name: str, source: PackageSource, told: WorkerState | None
) -> SourceStatus:
    """Look at a source that a package adds: no server of it can be asked."""
    config = observer.config
    kept = observer.kept(name, told)
    report = (told and told.report.stream) or StreamReport()
    error = (told and told.report.error) or kept.error
    final = error is not None and error.final
    resume = report.resume or (show(kept.resume) if kept.resume else None)
    at_rest = ("failed", error.exit_code) if error and final else ("stopped", 0)
    state, exit_code = state_of(told) or (at_rest if resume or final else ("new", 0))
    figures = (told and told.report.stream) or kept.figures
    problems = [*problems_of(told, state, error), *parked_problems(told)]
    return SourceStatus(
        name=name,
        kind=source.kind,
        state=state,
        exit_code=exit_code,
        problems=list(map(config.secrets.scrub, problems)),
        resume=resume,
        server_lsn=None,
        lag_bytes=None,
        lag_s=report.lag_s,
        ops=figures.ops,
        delivered=figures.delivered,
        ops_per_s=report.ops_per_s,
        delivered_per_s=report.delivered_per_s,
        slot=None,
        backfill=None,
        last_error=_last_error(config, error),
        risks=[],
        sinks=[
            _sink(config, sink, state, told, kept.figures.sinks.get(sink))
            for sink in source.sinks
        ],
    )


def _look_at_chained(
    observer: StatusObserver, name: str, source: KafkaSource, told: WorkerState | None
) -> SourceStatus:
    config = observer.config
    kept, group = observer.chained(name, source, told)
    seen = ChainedState(kept, told, group)
    report = seen.report or RelayReport()
    state, exit_code = seen.state()
    scrub = config.secrets.scrub
    return SourceStatus(
        name=name,
        kind=source.kind,
        state=state,
        exit_code=exit_code,
        problems=list(dict.fromkeys(map(scrub, seen.problems(state)))),
        resume=None,
        server_lsn=None,
        lag_bytes=None,
        lag_s=None,
        ops=seen.figures.ops,
        delivered=seen.figures.delivered,
        ops_per_s=report.ops_per_s,
        delivered_per_s=report.delivered_per_s,
        slot=None,
        backfill=None,
        last_error=_last_error(config, seen.error),
        risks=list(risks(source).values()),
        sinks=[_sink(config, sink, state, told) for sink in source.sinks],
        lag_records=seen.behind,
        poisoned=dict(seen.figures.poisoned),
    )


def _slot(source: PostgresSource, health: SlotHealth | None) -> SlotStatus | None:
    if health is None:
        return None
    return SlotStatus(
        source.slot,
        health.retained_wal,
        health.wal_status,
        health.safe_wal_size,
        synchronous=bool(health.synchronous),
        spill_txns=health.spill_txns,
        spill_bytes=health.spill_bytes,
        spilled=health.spilled,
    )


def _last_error(config: Config, error: ErrorReport | None) -> LastError | None:
    if error is None:
        return None
    return LastError(
        at=_time(error.at),
        error=error.error,
        hint=error.hint,
        repair=config.command(error.repair) if error.repair else "",
        exit_code=error.exit_code,
        stopped=error.final,
        sql=error.sql,
        then=error.then,
    )


def _kept_sink(kept: Counts | None) -> SinkReport:
    """Return what is kept of a sink of which no worker tells."""
    if kept is None:
        return SinkReport()
    found = totals(kept)
    return SinkReport(
        skipped=found.skipped,
        failed=found.failed,
        parked=found.parked,
        tables=found.tables,
    )


def _sink(
    config: Config,
    name: str,
    source_state: str,
    told: WorkerState | None,
    kept: Counts | None = None,
) -> SinkStatus:
    sink = config.sinks[name]
    found = (told.report.sinks if told else {}).get(name) or _kept_sink(kept)
    state = source_state if source_state in _GONE else "stopped"
    if source_state in _FLOWING:
        state = "delivering"
    if found.waiting and source_state in {*_FLOWING, "starting"}:
        # once a source polls, an error tells; but for one of a registry's
        told_by_tables = source_state == "polling" and not waits_for_another(found)
        state = state if told_by_tables else "waiting"
    return SinkStatus(
        name=name,
        kind=sink.kind,
        state=state,
        in_flight=found.in_flight,
        dropped=found.dropped,
        skipped=found.skipped,
        failed=found.failed,
        parked=found.parked,
        sent=found.records,
        left_out=found.left_out,
        errors=found.errors,
        tables={table: dict(counts) for table, counts in found.tables.items()},
        risks=list(risks(sink).values()),
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
