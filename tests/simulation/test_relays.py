"""Relays of one group: what a search among them is about happens."""

from itertools import islice

import pytest

from tests.simulation.installation import installed
from tests.simulation.relays import Relays
from tests.simulation.run import run
from tests.simulation.schedule import Schedule

_TRIED = 12


def test_relays_stop_and_lose_partitions_and_pass_nothing_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups: list[Relays] = []
    real = Relays.run

    def noted(self: Relays) -> int:
        groups.append(self)
        return real(self)

    monkeypatch.setattr(Relays, "run", noted)
    drawn = (Schedule.of(seed) for seed in range(100_000))
    with installed():
        for schedule in islice((one for one in drawn if one.relays), _TRIED):
            assert not run(schedule).violation
    assert sum(one.coordinator.rebalances for one in groups) > _TRIED * 3
    assert sum(one.coordinator.lost for one in groups)
    assert sum(one.checker.repeated for one in groups) > _TRIED
    assert sum(one.stops for one in groups)
    relayed = [name for one in groups for name in one.cluster.topics if "far." in name]
    assert len(relayed) > _TRIED
