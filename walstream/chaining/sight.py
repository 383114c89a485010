"""One chained source from all sides: its group, its state folder, who runs it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from walstream.chaining.figures import DOCUMENT
from walstream.config import KafkaSource
from walstream.errors import WalstreamError
from walstream.kafka.group import Place, gap, places
from walstream.kafka.reader import Partition
from walstream.positions import LmdbPositions
from walstream.told import Told, problems_of, state_of

_ASK_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class GroupSight:
    """How far the group is; empty where that cannot be asked."""

    places: Mapping[Partition, Place] = field(default_factory=dict)
    missing: tuple[str, ...] = ()  # topics
    unreachable: WalstreamError | None = None
    asked: bool = True

    @property
    def behind(self) -> int | None:
        """Count what waits in all partitions, whoever has them."""
        if self.unreachable is not None or not self.asked:
            return None
        return sum(place.behind for place in self.places.values())

    def gap(self, source: KafkaSource) -> WalstreamError | None:
        """Say that what comes next in some partition is not there."""
        for where, place in self.places.items():
            if place.gap:
                return gap(source.consumer, source.group, where, place.stored)
        return None


def look(source: KafkaSource) -> GroupSight:
    """Ask the upstream brokers; never raises WalstreamError."""
    try:
        found = places(source.consumer, source.group, source.topics, _ASK_S)
    except WalstreamError as error:
        return GroupSight(unreachable=error)
    there = {place.topic for place in found}
    return GroupSight(found, tuple(sorted(set(source.topics) - there)))


@dataclass(frozen=True, slots=True)
class Kept:
    """What the state folder says."""

    figures: Mapping[str, Any] = field(default_factory=dict)
    error: Mapping[str, Any] | None = None
    problem: WalstreamError | None = None


def kept_of(folder: Path) -> Kept:
    """Read a source's folder, beside whoever uses it."""
    try:
        with LmdbPositions.beside(folder) as positions:
            if positions is None:
                return Kept()
            positions.check_format()
            return Kept(positions.read(DOCUMENT) or {}, positions.read("error"))
    except WalstreamError as error:
        return Kept(problem=error)


@dataclass(frozen=True, slots=True)
class ChainedState:
    """One source, as instance, folder and group tell."""

    source: KafkaSource
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
        if (lost := self.group.gap(self.source)) is not None:
            return "stopped", lost.exit_code
        return ("stopped" if self.kept.figures else "new"), 0

    def problems(self, state: str) -> Iterator[str]:
        """Say why it is red, the nearest cause first."""
        yield from problems_of(self.told, state, self.error)
        lost = None if self.told else self.group.gap(self.source)
        for problem in (self.kept.problem, self.group.unreachable, lost):
            if problem is not None:
                yield str(problem.args[0])
        if unstored := self.told.get("unstored"):
            yield unstored
        if not self.told or self.told.get("state") != "waiting":
            return
        if away := self.told.get("upstream_away"):
            yield away
