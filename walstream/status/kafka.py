"""How one chained source is, as all who know something of it tell: pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from walstream.errors import WalstreamError
from walstream.kafka.offsets import Partition, Place
from walstream.status.report import Told, problems_of, state_of


@dataclass(frozen=True, slots=True)
class GroupSight:
    """How far the group is; empty where that cannot be asked."""

    places: Mapping[Partition, Place] = field(default_factory=dict)
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
class Kept:
    """What the state folder says."""

    figures: Mapping[str, Any] = field(default_factory=dict)
    error: Mapping[str, Any] | None = None
    problem: WalstreamError | None = None


@dataclass(frozen=True, slots=True)
class ChainedState:
    """One source, as instance, folder and group tell."""

    kept: Kept
    told: Told  # empty: nothing runs
    group: GroupSight

    @property
    def error(self) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self.told.get("error")
        return found or self.kept.error

    @property
    def figures(self) -> Mapping[str, Any]:
        return self.told if "ops" in self.told else self.kept.figures

    @property
    def behind(self) -> int | None:
        """Count the records that wait, as far as somebody knows."""
        found: int | None = self.told.get("lag_records")
        return found if self.group.behind is None else self.group.behind

    def state(self) -> tuple[str, int]:
        """Name its state, and the exit code that it stands for."""
        return state_of(self.told) or self._state_at_rest()

    def _state_at_rest(self) -> tuple[str, int]:
        if self.kept.problem is not None:
            return "failed", self.kept.problem.exit_code
        if self.error is not None and self.error["final"]:
            return "failed", self.error["exit_code"]
        if (unreachable := self.group.unreachable) is not None:
            return "stopped", unreachable.exit_code
        if (lost := self.group.lost) is not None:
            return "stopped", lost.exit_code
        return ("stopped" if self.kept.figures else "new"), 0

    def problems(self, state: str) -> Iterator[str]:
        """Say why it is red, the nearest cause first."""
        yield from problems_of(self.told, state, self.error)
        lost = None if self.told else self.group.lost
        for problem in (self.kept.problem, self.group.unreachable, lost):
            if problem is not None:
                yield str(problem.args[0])
        if unstored := self.told.get("unstored"):
            yield unstored
        if not self.told or self.told.get("state") != "waiting":
            return
        if away := self.told.get("upstream_away"):
            yield away
