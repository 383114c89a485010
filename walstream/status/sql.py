"""Status of a sql source, from a running instance and its state folder."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Self

from walstream.config import SqlSource
from walstream.errors import WalstreamError
from walstream.finding import Finding, warning
from walstream.pipeline.outage import KAFKA
from walstream.sources.report import ErrorReport, SinkReport, TableReport
from walstream.status.worker_state import WAITS, WorkerState, problems_of, state_of


@dataclass(frozen=True, slots=True)
class StoredPolls:
    """Empty before the first poll."""

    tables: Mapping[str, TableReport] = field(default_factory=dict)
    others: tuple[str, ...] = ()  # tables that are not configured any more
    error: ErrorReport | None = None  # the last one
    problem: WalstreamError | None = None  # why the folder tells no more


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A polled table. Keys below its position that were missing are looked for."""

    position: int | None  # the greatest key up to which all is delivered
    rows: int  # delivered, repeats too
    rows_per_s: float | None
    last_row_at: datetime | None
    missing_keys: int
    gaps: int  # that these lie in
    oldest_gap_at: datetime | None  # since when the first of them is looked for
    given_up: int  # keys that were missing, and are looked for no more
    held: bool  # no new rows are read: there are too many gaps
    error: str  # why it does not go on, or ""
    low_water_mark: datetime | None  # all transactions that were open then have ended
    lacks_mark: str  # why the engine tells no such mark, as far as it was asked
    hint: str = ""  # what to do about the error
    repair: str = ""  # SQL, or a command, that cures it; or ""

    @classmethod
    def of(cls, found: TableReport) -> Self:
        """Return the status of what was stored, or of what a worker tells."""
        return cls(
            position=found.key,
            rows=found.rows,
            rows_per_s=found.rows_per_s,
            last_row_at=_time(found.at),
            missing_keys=found.missing_keys,
            gaps=found.gaps,
            oldest_gap_at=_time(found.oldest_gap),
            given_up=found.given_up,
            held=found.held,
            error=found.error,
            low_water_mark=_time((found.low or 0) / 1e6 or None),
            lacks_mark=found.lacks_mark,
            hint=found.hint,
            repair=found.repair,
        )


def waits_for_another(sink: SinkReport) -> bool:
    """Return whether a sink waits for something else than brokers, as far as known."""
    return sink.outage is not None and sink.outage.of != KAFKA


def _time(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


@dataclass(frozen=True, slots=True)
class PolledState:
    """One source, as instance and folder tell."""

    source: SqlSource
    kept: StoredPolls
    told: WorkerState | None  # None: nothing runs

    @property
    def error(self) -> ErrorReport | None:
        return (self.told and self.told.report.error) or self.kept.error

    def tables(self) -> dict[str, TableStatus]:
        """Return how each is, by its name as configured."""
        polls = self.told.report.polls if self.told else None
        known = {**self.kept.tables, **(polls.tables if polls else {})}  # newer
        return {
            name: TableStatus.of(known.get(name) or TableReport())
            for name in self.source.tables
        }

    def state(self) -> tuple[str, int]:
        """Return its state and the exit code."""
        state, code = state_of(self.told) or self._state_at_rest()
        held_up = any(one.held or one.error for one in self.tables().values())
        if held_up or self._awaited(state):
            code = code or WAITS
        return state, code

    def _state_at_rest(self) -> tuple[str, int]:
        if self.kept.problem is not None:
            return "failed", self.kept.problem.exit_code
        if self.error is not None and self.error.final:
            return "failed", self.error.exit_code
        return ("stopped" if self.kept.tables else "new"), 0

    def _awaited(self, state: str) -> dict[str, SinkReport]:
        """Return sinks whose brokers do not answer; once it polls, an error tells.

        And at any time those whose registry does not.
        """
        if self.told is None:
            return {}
        return {
            name: sink
            for name, sink in self.told.report.sinks.items()
            if sink.waiting and (state == "starting" or waits_for_another(sink))
        }

    def problems(self, state: str) -> Iterator[str]:
        """Yield why it is red, the nearest cause first."""
        yield from problems_of(self.told, state, self.error)
        if self.kept.problem is not None:
            yield str(self.kept.problem.args[0])
        for name, sink in self._awaited(state).items():
            outage = sink.outage
            why = f": {outage.why}: {outage.hint}" if outage else ""
            on = outage.of if outage else KAFKA
            yield f"sink {name!r} waits for {on}{why}"
        ended_by = self.error.error if self.error and state == "failed" else ""
        for name, table in self.tables().items():
            if table.error and table.error != ended_by:
                cure = f": {table.repair}" if table.repair else ""
                yield f"blocked: {table.error}{cure}"
            if table.held:
                yield (
                    f"table {name!r}: no new rows are read: {table.gaps:,} gaps of "
                    "missing keys are open, which is max_gaps: raise it, or lower "
                    'gap_timeout; sparse keys need gap_timeout = "0"'
                )


def beyond_table(name: str, position: int | None, newest: int | None) -> Finding | None:
    """Warn of a position above all rows: what gets such keys now is not read."""
    if position is None or newest is None or newest >= position:
        return None
    return warning(
        "position-beyond-table",
        f"table {name}",
        f"its greatest key is {newest}, and its position {position}: unless the"
        " engine's next key is above that, run has the table wait (on_restart)",
        "rows were deleted, or the table was created again or restored to an earlier "
        "state",
    )
