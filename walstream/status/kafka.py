"""Status of one kafka source, from all its reports: pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from walstream.errors import WalstreamError
from walstream.kafka.offsets import GroupOffset, Partition
from walstream.sources.figures import RelayFigures
from walstream.sources.report import ErrorReport, RelayReport
from walstream.status.worker_state import WorkerState, problems_of, state_of


@dataclass(frozen=True, slots=True)
class GroupSight:
    """Progress of the group; empty if it cannot be asked."""

    places: Mapping[Partition, GroupOffset] = field(default_factory=dict)
    missing: tuple[str, ...] = ()  # topics
    lost: WalstreamError | None = None  # what comes next in some partition
    unreachable: WalstreamError | None = None
    asked: bool = True

    @property
    def behind(self) -> int | None:
        """Count what waits in all partitions, whoever has them."""
        if self.unreachable is not None or not self.asked:
            return None
        return sum(place.behind for place in self.places.values())


@dataclass(frozen=True, slots=True)
class StoredRelay:
    """Facts of the state folder."""

    figures: RelayFigures | None = None  # None: nothing was passed on yet
    error: ErrorReport | None = None
    problem: WalstreamError | None = None


@dataclass(frozen=True, slots=True)
class ChainedState:
    """One source, as instance, folder and group tell."""

    kept: StoredRelay
    told: WorkerState | None  # None: nothing runs
    group: GroupSight

    @property
    def error(self) -> ErrorReport | None:
        return (self.told and self.told.report.error) or self.kept.error

    @property
    def report(self) -> RelayReport | None:
        """Return its worker's report; None: there is none."""
        return self.told.report.relay if self.told else None

    @property
    def figures(self) -> RelayReport | RelayFigures:
        return self.report or self.kept.figures or RelayFigures()

    @property
    def behind(self) -> int | None:
        """Return the count of waiting records, as far as known."""
        told = self.report.lag_records if self.report else None
        return told if self.group.behind is None else self.group.behind

    def state(self) -> tuple[str, int]:
        """Return its state and the exit code."""
        return state_of(self.told) or self._state_at_rest()

    def _state_at_rest(self) -> tuple[str, int]:
        if self.kept.problem is not None:
            return "failed", self.kept.problem.exit_code
        if self.error is not None and self.error.final:
            return "failed", self.error.exit_code
        if (unreachable := self.group.unreachable) is not None:
            return "stopped", unreachable.exit_code
        if (lost := self.group.lost) is not None:
            return "stopped", lost.exit_code
        return ("stopped" if self.kept.figures else "new"), 0

    def problems(self, state: str) -> Iterator[str]:
        """Yield why it is red, the nearest cause first."""
        yield from problems_of(self.told, state, self.error)
        lost = None if self.told else self.group.lost
        for problem in (self.kept.problem, self.group.unreachable, lost):
            if problem is not None:
                yield str(problem.args[0])
        report = self.report
        if report is None or self.told is None:
            return
        if report.unstored:
            yield report.unstored
        if self.told.report.state == "waiting" and report.upstream_away:
            yield report.upstream_away
