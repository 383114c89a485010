"""Search for schedules that break something; what breaks is made short."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Final

from tests.simulation.outcome import Outcome
from tests.simulation.run import run
from tests.simulation.schedule import Schedule
from tests.support.walk.shrinker import shrunk

_SHRINK_S: Final = 60.0
Element = tuple[str, Any]
"""A part of a schedule, and one element of it."""


def outcomes(first: int) -> Iterator[tuple[int, Outcome]]:
    """Run the schedules of one seed after the other; the ports are `installed`."""
    seed = first
    while True:
        yield seed, run(Schedule.of(seed))
        seed += 1


def shortest(schedule: Schedule, violation: str) -> Schedule:
    """Leave out what is not needed for the same kind of violation."""
    kind = violation.partition(":")[0]

    def fails(elements: list[Element]) -> bool:
        found = run(_joined(schedule, elements)).violation
        return found.partition(":")[0] == kind

    return _joined(schedule, shrunk(_elements(schedule), fails, _SHRINK_S))


def _elements(schedule: Schedule) -> list[Element]:
    return [
        (part.name, element)
        for part in fields(schedule)
        if part.name != "seed"
        for element in getattr(schedule, part.name)
    ]


def _joined(schedule: Schedule, elements: list[Element]) -> Schedule:
    parts: dict[str, list[Any]] = {
        part.name: [] for part in fields(schedule) if part.name != "seed"
    }
    for name, element in elements:
        parts[name].append(element)
    return replace(schedule, **parts)  # type: ignore[arg-type]
