"""How every source and sink is: from a running instance, the state folder, the servers.

Works whether an instance runs or not. What cannot be asked is None, and said.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from walstream.beside import progress
from walstream.config import Config, PostgresSource
from walstream.config.risk import risks
from walstream.control import ask_status
from walstream.errors import WalstreamError
from walstream.gauge import alarm_text
from walstream.lock import holder
from walstream.lsn import parse, show
from walstream.positions import LmdbPositions
from walstream.postgres import slot as slots
from walstream.postgres.connection import session
from walstream.postgres.slot import Health

_WAITS: Final = 5
_DEFECT: Final = 1
_HISTORY: Final = 3


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
    state: str  # delivering | waiting | stopped
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
    state: (
        str  # streaming | starting | waiting | silent | lent | failed | stopped | new
    )
    exit_code: int  # 0, or what `run` ended with, or would wait for (5)
    problems: list[str]  # why it is red; empty: it is not
    resume: str | None  # LSN
    server_lsn: str | None
    lag_bytes: int | None
    lag_s: float | None
    ops: int  # read since the last reset
    delivered: int
    ops_per_s: float | None
    delivered_per_s: float | None
    slot: SlotStatus | None
    last_error: LastError | None
    risks: list[str]
    sinks: list[SinkStatus]
    backfill: dict[str, TableBackfill] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Status:
    at: datetime
    pid: int | None  # of the running instance; null: none runs
    started_at: datetime | None
    exit_code: int  # the highest of its sources
    sources: list[SourceStatus]


SCHEMA: Final = TypeAdapter(Status)


def look(config: Config, now: Callable[[], float] = time.time) -> Status:
    """Look at every source. Raises nothing that a server or a state folder does.

    But for a folder that this user may not read.
    """
    at = now()
    state = Path(config.state)
    running = ask_status(state)
    told = running["sources"] if running else {}
    mute = holder(state) if running is None else None
    sources = [
        _look_at(config, name, source, _mute(mute) if mute else told.get(name), at)
        for name, source in sorted(config.sources.items())
        if isinstance(source, PostgresSource)
    ]
    return Status(
        at=_time(at),
        pid=running["pid"] if running else None,
        started_at=_time(running["started_at"]) if running else None,
        exit_code=max((source.exit_code for source in sources), default=0),
        sources=sources,
    )


def _mute(pid: str) -> dict[str, Any]:
    """Stand for what a process that holds the folder does not answer."""
    return {"exit_code": None, "lent": False, "silent": True, "mute": pid, "pid": pid}


@dataclass(slots=True)
class _Kept:
    """What the state folder says, whether or not something runs."""

    resume: int | None = None
    figures: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    backfill: dict[str, dict[str, Any]] = field(default_factory=dict)
    problem: WalstreamError | None = None


def _kept(folder: Path) -> _Kept:
    try:
        with LmdbPositions.beside(folder) as positions:
            if positions is None:
                return _Kept()
            position = positions.position()
            return _Kept(
                position.resume if position else None,
                positions.read("figures") or {},
                positions.read("error"),
                progress.stored(positions.read(progress.DOCUMENT)),
            )
    except WalstreamError as error:
        return _Kept(problem=error)


def _health(source: PostgresSource) -> tuple[Health | None, WalstreamError | None]:
    try:
        with session(source.dsn) as connection:
            return slots.health(connection, source.slot), None
    except WalstreamError as error:
        return None, error


@dataclass(frozen=True, slots=True)
class _Seen:
    """One source, as all who know something of it tell."""

    source: PostgresSource
    kept: _Kept
    told: dict[str, Any]  # by the running instance; empty: none runs
    health: Health | None
    unreachable: WalstreamError | None

    @property
    def error(self) -> dict[str, Any] | None:
        return self.told.get("error") or self.kept.error

    @property
    def figures(self) -> dict[str, Any]:
        return self.told if "ops" in self.told else self.kept.figures

    @property
    def backfill(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] | None = self.told.get("backfill")
        return self.kept.backfill if found is None else found

    @property
    def resume(self) -> int | None:
        reported = self.told.get("resume")
        found = parse(reported) if reported else 0
        return max(found, self.kept.resume or 0) or None

    @property
    def lag_bytes(self) -> int | None:
        if self.health is None or self.resume is None:
            return None
        return max(0, self.health.flush_lsn - self.resume)

    def lag_s(self, now: float) -> float | None:
        if self.told.get("lag_s") is not None and not self.told["silent"]:
            return float(self.told["lag_s"])
        if self.lag_bytes == 0:
            return 0.0
        current_at = self.kept.figures.get("current_at")
        return max(0.0, now - current_at) if current_at else None

    def state(self) -> tuple[str, int]:
        """Name its state, and the exit code that it stands for."""
        told = self.told
        if not told:
            return self._state_at_rest()
        if (code := told["exit_code"]) is not None:
            return ("failed" if code else "stopped"), code
        if told["lent"]:
            return "lent", 0
        if told["silent"]:
            return "silent", _DEFECT
        # without a process it died, and will be started again
        state = told.get("state", "starting") if told["pid"] else "waiting"
        return state, _WAITS if state == "waiting" else 0

    def _state_at_rest(self) -> tuple[str, int]:
        if self.kept.problem is not None:
            return "failed", self.kept.problem.exit_code
        if self.error is not None and self.error["final"]:
            return "failed", self.error["exit_code"]
        if self.unreachable is not None:
            return "stopped", self.unreachable.exit_code
        if self.kept.resume is None:
            return "new", 0
        return "stopped", _HISTORY if self.slot_problem else 0

    @property
    def slot_problem(self) -> str:
        """Say why the slot cannot be read any more; "" while it can."""
        if self.unreachable is not None or not self.kept.resume:
            return ""
        if self.health is None:
            return f"slot {self.source.slot!r} is gone"
        if self.health.lost:
            return f"slot {self.source.slot!r} cannot be read: {self.health.lost}"
        return ""

    @property
    def alarm(self) -> str:
        held = self.health.retained_wal if self.health else 0
        if held <= self.source.alarm_retained_wal:
            return ""
        return alarm_text(self.source.slot, held, self.source.alarm_retained_wal)

    def problems(self, state: str) -> Iterator[str]:
        """Say why it is red, the nearest cause first."""
        waits = state == "waiting" and self.told.get("state") == "waiting"
        if self.error and (waits or state == "failed"):
            yield self.error["error"]
        if pid := self.told.get("mute"):
            yield f"process {pid} holds the state folder, but does not answer"
        elif state == "silent":
            yield "its worker runs but does not report"
        if (code := self.told.get("died_with")) is not None:
            yield (
                f"its worker died with exit code {code} and will be started again: the"
                " log says why"
            )
        for problem in (self.kept.problem, self.unreachable):
            if problem is not None:
                yield str(problem.args[0])
        yield from filter(None, (self.slot_problem, self.alarm))


def _look_at(
    config: Config,
    name: str,
    source: PostgresSource,
    told: dict[str, Any] | None,
    now: float,
) -> SourceStatus:
    kept = _kept(Path(config.state) / name)
    health, unreachable = _health(source)
    seen = _Seen(source, kept, told or {}, health, unreachable)
    state, exit_code = seen.state()
    if seen.alarm:
        exit_code = exit_code or _WAITS
    return SourceStatus(
        name=name,
        kind=source.kind,
        state=state,
        exit_code=exit_code,
        problems=list(dict.fromkeys(map(config.secrets.scrub, seen.problems(state)))),
        resume=show(seen.resume) if seen.resume else None,
        server_lsn=show(health.flush_lsn) if health else None,
        lag_bytes=seen.lag_bytes,
        lag_s=seen.lag_s(now),
        ops=seen.figures.get("ops", 0),
        delivered=seen.figures.get("delivered", 0),
        ops_per_s=seen.told.get("ops_per_s"),
        delivered_per_s=seen.told.get("delivered_per_s"),
        slot=_slot(source, health),
        last_error=_last_error(config, seen.error),
        risks=list(risks(source).values()),
        sinks=[_sink(config, sink, state, told) for sink in source.sinks],
        backfill={
            table: TableBackfill(**{**how, "error": config.secrets.scrub(how["error"])})
            for table, how in seen.backfill.items()
        },
    )


def _slot(source: PostgresSource, health: Health | None) -> SlotStatus | None:
    if health is None:
        return None
    return SlotStatus(
        source.slot, health.retained_wal, health.wal_status, health.safe_wal_size
    )


def _last_error(config: Config, error: dict[str, Any] | None) -> LastError | None:
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


def _sink(
    config: Config, name: str, source_state: str, told: dict[str, Any] | None
) -> SinkStatus:
    sink = config.sinks[name]
    figures = (told or {}).get("sinks", {}).get(name)
    if figures is None or source_state != "streaming":
        state = "stopped"
    else:
        state = "waiting" if figures["waiting"] else "delivering"
    return SinkStatus(
        name=name,
        kind=sink.kind,
        state=state,
        in_flight=figures["in_flight"] if figures else None,
        dropped=figures["dropped"] if figures else None,
        risks=list(risks(sink).values()),
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
