"""Relays of one group: what a search among them is about happens."""

from dataclasses import replace
from itertools import islice

import pytest

from tests.simulation.installation import installed
from tests.simulation.relays import Relays
from tests.simulation.run import run
from tests.simulation.schedule import Schedule

_TRIED = 12
# a member lost a partition with its first record in it, and got it again
AGAIN: Schedule = replace(
    Schedule.of(1634),
    commits=[(0.0023, 3069534988), (0.0175, 3107773672)],
    faults=[],
    kills=[],
    freezes=[],
    reads=[],
    ddl=[],
    rows=[],
    polls=[],
    instances=[],
    members=[],
    relays=[
        (1.1084, "join"),
        (1.5683, "join"),
        (1.828, "freeze"),
        (2.6846, "kill at a call"),
    ],
    transactions=[(0.0, "transactional")],
)


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[Relays]:
    """Keep the relays of each schedule that runs."""
    kept: list[Relays] = []
    real = Relays.run

    def noted(self: Relays) -> int:
        kept.append(self)
        return real(self)

    monkeypatch.setattr(Relays, "run", noted)
    return kept


def test_relays_stop_and_lose_partitions_and_pass_nothing_over(
    groups: list[Relays],
) -> None:
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


def test_transactional_relays_pass_everything_on_once(groups: list[Relays]) -> None:
    """A producer of each partition: what one wrote is whole, and left out later."""
    drawn = (Schedule.of(seed) for seed in range(100_000))
    fenced = (one for one in drawn if one.relays)
    with installed():
        for schedule in islice(fenced, _TRIED):
            steps = [*AGAIN.transactions, (0.5, "take over"), (2.0, "take over")]
            calm = replace(schedule, kills=[], faults=[], transactions=steps)
            assert not run(calm).violation
    assert sum(one.coordinator.lost for one in groups)
    assert not sum(one.checker.repeated for one in groups if one.checker.once)
    assert sum(one.checker.once for one in groups) > 1


def test_a_partition_that_came_back_names_its_source_again() -> None:
    with installed():
        assert not run(AGAIN).violation
