"""What an instance tells of a source: its state, and why it is red."""

from typing import Any

import pytest

from walstream.status.report import problems_of, state_of

ALIVE = {"exit_code": None, "lent": False, "silent": False, "pid": 7}


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ({"state": "polling"}, ("polling", 0)),
        ({}, ("starting", 0)),
        ({"state": "waiting"}, ("waiting", 5)),
        ({"state": "polling", "pid": None}, ("waiting", 5)),
        ({"state": "polling", "silent": True}, ("silent", 1)),
        ({"silent": True, "lent": True}, ("lent", 0)),
        ({"lent": True, "exit_code": 3}, ("failed", 3)),
        ({"exit_code": 0}, ("stopped", 0)),
    ],
)
def test_the_state_is_that_of_the_worker_unless_more_is_known(
    told: dict[str, Any], state: tuple[str, int]
) -> None:
    assert state_of({**ALIVE, **told}) == state


def test_nothing_is_told_where_nothing_runs() -> None:
    assert state_of({}) is None
    assert not list(problems_of({}, "stopped", {"error": "of long ago"}))


def test_an_error_is_a_problem_while_it_holds_something_up() -> None:
    error = {"error": "the database is away"}
    waiting = {**ALIVE, "state": "waiting"}
    assert list(problems_of(waiting, "waiting", error)) == ["the database is away"]
    assert list(problems_of({}, "failed", error)) == ["the database is away"]
    assert not list(problems_of({**ALIVE, "state": "polling"}, "polling", error))


def test_a_worker_that_says_nothing_or_died_is_a_problem() -> None:
    (mute,) = problems_of({**ALIVE, "mute": "8"}, "silent", None)
    assert "process 8" in mute
    assert list(problems_of({**ALIVE, "silent": True}, "silent", None))
    (died,) = problems_of({**ALIVE, "pid": None, "died_with": -9}, "waiting", None)
    assert "exit code -9" in died
