"""Schedules that found a defect of walstream once, made short."""

from typing import Final

import pytest

from tests.simulation.installation import installed
from tests.simulation.run import run
from tests.simulation.schedule import Schedule

FOUND: Final = {
    # the second sink of a process that was frozen delivered what it had, as it closed
    "frozen with two sinks": (
        '{"seed":508,"commits":[],"faults":[],"kills":[],"freezes":[],'
        '"instances":[[0.0852,"freeze behind Kafka"]]}'
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_mended(name: str) -> None:
    with installed():
        assert not run(Schedule.from_json(FOUND[name])).violation
