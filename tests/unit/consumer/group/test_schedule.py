"""Whose turn it is."""

import math

from consumer.group.schedule import AGAIN, ON_CALL, After, Schedule


def scheduled(*tasks: str) -> Schedule[str]:
    schedule: Schedule[str] = Schedule()
    for task in tasks:
        schedule.add(task)
    return schedule


def turn(schedule: Schedule[str], after: After | None, now: float = 0) -> str | None:
    task = schedule.take()
    if task is not None:
        schedule.give_back(task, after, now)
    return task


def test_turns_are_taken_in_order() -> None:
    schedule = scheduled("a", "b")
    assert [turn(schedule, AGAIN) for _ in range(4)] == ["a", "b", "a", "b"]
    schedule.add("c", first=True)
    assert turn(schedule, None) == "c"
    assert len(schedule) == 2


def test_who_has_a_turn_gets_no_other() -> None:
    schedule = scheduled("a")
    assert schedule.take() == "a"
    assert not schedule.call("a")
    assert schedule.take() is None
    assert not schedule.withdraw("a")
    schedule.give_back("a", ON_CALL, 0)
    assert schedule.take() == "a"  # it was called meanwhile


def test_a_rest_ends_in_time_or_by_a_call() -> None:
    schedule = scheduled("a", "b")
    turn(schedule, After(5))
    turn(schedule, ON_CALL)
    assert schedule.due == 5
    assert schedule.ripen(4) == 0
    assert schedule.take() is None
    assert schedule.call("a")
    assert not schedule.call("a")
    assert schedule.due == math.inf
    assert turn(schedule, After(5), now=10) == "a"
    assert schedule.ripen(15) == 1
    assert schedule.take() == "a"


def test_a_deaf_wait_hears_an_urge_alone() -> None:
    schedule = scheduled("a")
    turn(schedule, After(5, deaf=True))
    assert not schedule.call("a")
    assert schedule.take() is None
    assert schedule.urge("a")
    assert schedule.take() == "a"
    schedule.call("a")
    schedule.give_back("a", After(5, deaf=True), 0)
    assert schedule.take() is None
    schedule.urge("a")
    assert schedule.take() == "a"
    schedule.urge("a")
    schedule.give_back("a", After(5, deaf=True), 0)
    assert schedule.take() == "a"


def test_who_is_withdrawn_is_out_wherever_it_stood() -> None:
    schedule = scheduled("ready", "waits")
    assert schedule.take() == "ready"
    assert turn(schedule, After(5)) == "waits"
    schedule.give_back("ready", AGAIN, 0)
    assert schedule.withdraw("ready")
    assert schedule.withdraw("waits")
    assert not schedule.withdraw("waits")
    assert schedule.ripen(9) == 0
    assert schedule.take() is None
    assert len(schedule) == 0
    assert not schedule.call("waits")
    assert not schedule.urge("waits")
