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
    # a root was added again and read, while a partition of it was detached: rows that
    # came back with the partition were not read
    "detached while its root is added again": (
        '{"seed":700588,"commits":[[0.2512,3043902033],[0.2996,4126213552],'
        "[0.9432,977023703],[1.2658,429069302],[2.7609,526848828]],"
        '"faults":[],"kills":[],"freezes":[],'
        '"ddl":[[0.3005,"detach"],[0.9704,"drop and add table"]]}'
    ),
    # where a relay began was not stored: of a partition that it found empty nobody
    # knew what was deleted before it was read
    "deleted before a first record was relayed": (
        '{"seed":105,"commits":[[2.6434,545659014]],"faults":[],"kills":[],'
        '"freezes":[],"relays":[[0.0286,"freeze at a call"],[0.1599,"retention"]]}'
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_was_found_is_mended(name: str) -> None:
    with installed():
        assert not run(Schedule.from_json(FOUND[name])).violation
