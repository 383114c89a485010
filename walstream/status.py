"""How every source and sink is: from a running instance, the state folder, the servers.

Works whether an instance runs or not. What cannot be asked is None, and said.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from walstream.backfill.status import BackfillStatus, backfill_status
from walstream.backfill.status import problems as backfill_problems
from walstream.config import Config, KafkaSource, PostgresSource, SqlSource
from walstream.config.risk import risks
from walstream.control import ask_status
from walstream.eyes import Eyes, ToldEyes
from walstream.lock import holder
from walstream.lsn import show
from walstream.polling.status import PolledState, TableStatus
from walstream.postgres.slot import Health
from walstream.snapshot import Snapshot
from walstream.source_state import SourceState
from walstream.told import WAITS, Told


@dataclass(frozen=True, slots=True)
class LastError:
    """The last thing that went wrong; it may be long over."""

    at: datetime
    error: str
    hint: str
    repair: str  # a command, or ""
    exit_code: int
    stopped: bool  # did it end the source until an operator acts?


@dataclass(frozen=True, slots=True)
class SinkStatus:
    name: str
    kind: str
    state: str  # delivering | waiting | stopped | detached | dropped
    in_flight: int | None  # records
    dropped: int | None  # ops without a topic, since the stream began
    risks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SlotStatus:
    name: str
    retained_wal: int  # bytes
    wal_status: str | None
    safe_wal_size: int | None  # bytes until the server gives it up; null: no limit


@dataclass(frozen=True, slots=True)
class TableBackfill:
    """A table whose old rows come in beside the stream."""

    rows: int  # delivered
    state: str  # waiting | reading | done | error
    error: str  # why it does not go on, or ""


@dataclass(frozen=True, slots=True)
class SourceStatus:
    name: str
    kind: str
    # streaming | backfilling | polling | starting | waiting | silent | lent | failed
    # | stopped | new
    state: str
    exit_code: int  # 0, or what `run` ended with, or would wait for (5)
    problems: list[str]  # why it is red; empty: it is not
    resume: str | None  # LSN
    server_lsn: str | None
    lag_bytes: int | None
    lag_s: float | None
    ops: int  # or rows of a sql source: read since the last reset
    delivered: int
    ops_per_s: float | None
    delivered_per_s: float | None
    slot: SlotStatus | None
    backfill: BackfillStatus | None
    last_error: LastError | None
    risks: list[str]
    sinks: list[SinkStatus]
    beside: dict[str, TableBackfill] = field(default_factory=dict)
    tables: dict[str, TableStatus] = field(default_factory=dict)  # polled ones


@dataclass(frozen=True, slots=True)
class Status:
    at: datetime
    pid: int | None  # of the running instance; null: none runs
    started_at: datetime | None
    exit_code: int  # the highest of its sources
    sources: list[SourceStatus]


_GONE: Final = frozenset({"detached", "dropped"})  # from the source's stream
_FLOWING: Final = frozenset({"streaming", "polling", "backfilling"})
SCHEMA: Final = TypeAdapter(Status)


def of_run(config: Config, snapshot: Snapshot) -> Status:
    """Tell what the running instance itself knows: no server is asked, no folder."""
    running = snapshot.running
    return _status(ToldEyes(config), running, running["sources"], snapshot.at)


def look(config: Config, now: Callable[[], float] = time.time) -> Status:
    """Look at every source. Raises nothing that a server or a state folder does.

    But for a folder that this user may not read.
    """
    state = Path(config.state)
    running = ask_status(state)
    told = running["sources"] if running else {}
    mute = holder(state) if running is None else None
    if mute:
        told = dict.fromkeys(config.sources, _mute(mute))
    return _status(Eyes(config), running, told, now())


def _status(eyes: Eyes, running: Told | None, told: Told, at: float) -> Status:
    """Tell of all sources what the running instance, if one does, and `eyes` say."""
    away = running.get("away", {}) if running else {}
    sources = [
        _look_at(eyes, name, source, _of(name, told, away), at)
        for name, source in sorted(eyes.config.sources.items())
        if not isinstance(source, KafkaSource)
    ]
    return Status(
        at=_time(at),
        pid=running["pid"] if running else None,
        started_at=_time(running["started_at"]) if running else None,
        exit_code=max((source.exit_code for source in sources), default=0),
        sources=sources,
    )


def _of(name: str, told: Told, away: Told) -> dict[str, Any]:
    """Give what is told of a source; nothing, when it is not known there."""
    return {**told[name], "workers_away": away} if name in told else {}


def _mute(pid: str) -> dict[str, Any]:
    """Stand for what a process that holds the folder does not answer."""
    return {"exit_code": None, "lent": False, "silent": True, "mute": pid, "pid": pid}


def _look_at(
    eyes: Eyes,
    name: str,
    source: PostgresSource | SqlSource,
    told: dict[str, Any],
    now: float,
) -> SourceStatus:
    if isinstance(source, SqlSource):
        return _look_at_polled(eyes, name, source, told)
    config = eyes.config
    kept = eyes.kept(name, told)
    health, unreachable = eyes.health(source, told)
    seen = SourceState(source, kept, told, health, unreachable)
    state, exit_code = seen.state()
    away = eyes.away(source, name, kept, told)
    if seen.alarm or away:
        exit_code = exit_code or WAITS
    given_up = backfill_problems(name, kept.backfill)
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
        ops=seen.figures.get("ops", 0),
        delivered=seen.figures.get("delivered", 0),
        ops_per_s=seen.told.get("ops_per_s"),
        delivered_per_s=seen.told.get("delivered_per_s"),
        slot=_slot(source, health),
        backfill=backfill_status(kept.backfill, seen.told.get("backfill")),
        last_error=_last_error(config, seen.error),
        risks=list(risks(source).values()),
        sinks=[
            _sink(config, sink, away[sink].state if sink in away else state, told)
            for sink in source.sinks
        ],
        beside={
            table: TableBackfill(**{**how, "error": config.secrets.scrub(how["error"])})
            for table, how in seen.beside.items()
        },
    )


def _look_at_polled(
    eyes: Eyes, name: str, source: SqlSource, told: dict[str, Any]
) -> SourceStatus:
    config = eyes.config
    seen = PolledState(source, eyes.polls(name, source), told)
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


def _slot(source: PostgresSource, health: Health | None) -> SlotStatus | None:
    if health is None:
        return None
    return SlotStatus(
        source.slot, health.retained_wal, health.wal_status, health.safe_wal_size
    )


def _last_error(config: Config, error: Told | None) -> LastError | None:
    if error is None:
        return None
    return LastError(
        at=_time(error["at"]),
        error=error["error"],
        hint=error["hint"],
        repair=config.command(error["repair"]) if error["repair"] else "",
        exit_code=error["exit_code"],
        stopped=error["final"],
    )


def _sink(config: Config, name: str, source_state: str, told: Told) -> SinkStatus:
    sink = config.sinks[name]
    figures = told.get("sinks", {}).get(name, {})
    state = source_state if source_state in _GONE else "stopped"
    if source_state in _FLOWING:
        state = "delivering"
    if figures.get("waiting") and source_state in {"streaming", "starting"}:
        state = "waiting"
    return SinkStatus(
        name=name,
        kind=sink.kind,
        state=state,
        in_flight=figures.get("in_flight"),
        dropped=figures.get("dropped"),
        risks=list(risks(sink).values()),
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
