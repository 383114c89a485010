"""Several instances of one source: what a search among them is about happens."""

from tests.simulation import instances
from tests.simulation.installation import installed
from tests.simulation.schedule import Schedule
from tests.simulation.world import Violation

_TRIED = 12


def test_a_slot_changes_hands_and_its_former_reader_ends() -> None:
    ends: list[str] = []
    streamed = repeated = 0
    drawn = (Schedule.of(seed) for seed in range(100_000))
    several = (schedule for schedule in drawn if schedule.instances)
    with installed():
        for schedule, _ in zip(several, range(_TRIED), strict=False):
            Violation.first = ""
            them = instances.made(schedule)
            them.run()
            assert not Violation.first
            streamed += sum(one.folder in them.checker.stored for one in them.all[1:])
            repeated += them.checker.repeated
            ends += [one.ended for one in them.all if one.ended]
    assert streamed > _TRIED // 2
    assert repeated > _TRIED // 3
    said = " ".join(ends)
    assert "beyond the position" in said  # another one moved its slot
    assert "is read now by another" in said  # it has no state
    assert "the state folder is in use" in said
