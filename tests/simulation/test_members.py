"""Members of a consumer group: what a search among them is about happens."""

from collections.abc import Iterator
from itertools import chain, islice

import pytest

from tests.simulation.consumer import SimGroup
from tests.simulation.installation import installed
from tests.simulation.members import Members
from tests.simulation.retention import STEP
from tests.simulation.rules import taken_out
from tests.simulation.run import run
from tests.simulation.schedule import Schedule

_TRIED = 12
_MOST = 600  # schedules until a rule that is out has to be missed


@pytest.fixture(autouse=True)
def ports() -> Iterator[None]:
    with installed():
        yield


def _schedules(*first: int) -> Iterator[Schedule]:
    """Give those of these seeds, then of all."""
    drawn = map(Schedule.of, chain(first, range(100_000)))
    return (schedule for schedule in drawn if schedule.members)


def test_members_lose_partitions_and_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups: list[Members] = []
    real = Members.run

    def noted(self: Members) -> int:
        groups.append(self)
        return real(self)

    monkeypatch.setattr(Members, "run", noted)
    for schedule in islice(_schedules(), _TRIED):
        assert not run(schedule).violation
    assert {one.mirrors for one in groups} == {True, False}
    assert sum(one.coordinator.rebalances for one in groups) > _TRIED * 3
    assert sum(one.coordinator.lost for one in groups) > _TRIED // 2
    assert sum(one.target.ended for one in groups)
    assert sum(one.target.lost_answers for one in groups)


def test_a_group_stops_where_unread_records_are_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups: list[Members] = []
    real = Members.run

    def noted(self: Members) -> int:
        groups.append(self)
        return real(self)

    monkeypatch.setattr(Members, "run", noted)
    tried = (one for one in _schedules() if STEP in {what for _, what in one.members})
    for schedule in islice(tried, _TRIED * 3):
        assert not run(schedule).violation
    stops = [one for one in groups if one.retention.stops]
    others = [one for one in groups if not one.retention.gone]
    assert {one.mirrors for one in stops} == {True, False}
    assert any(one.coordinator.log.low for one in others)  # all of it had been read


@pytest.mark.parametrize(
    ("rule", "seed"),  # which missed it after many others
    [
        ("a batch of a lost partition takes no effect", 11570),
        ("a truncation waits for every partition", 19),
        ("what took effect is passed over", 19),
    ],
)
def test_its_members_alone_miss_a_rule_that_is_out(
    rule: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimGroup, "run", lambda _self: None)
    monkeypatch.setattr(SimGroup, "check", lambda _self, _rows: None)
    with taken_out(rule):
        tried = islice(_schedules(seed), _MOST)
        found = (run(schedule).violation for schedule in tried)
        assert any(one.startswith(("I11", "member", "liveness")) for one in found)
