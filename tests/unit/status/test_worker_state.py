"""What an instance tells of a source: its state, and why it is red."""

from dataclasses import replace

import pytest

from walstream.sources.report import ErrorReport, StreamReport, WorkerReport
from walstream.status.worker_state import (
    WorkerState,
    problems_of,
    state_of,
    worker_document,
    worker_of,
)
from walstream.telemetry.json_codec import dumps, loads

POLLING, WAITING = WorkerReport(state="polling"), WorkerReport(state="waiting")
ALIVE = WorkerState(report=POLLING, pid=7)


@pytest.mark.parametrize(
    ("worker", "state"),
    [
        (ALIVE, ("polling", 0)),
        (replace(ALIVE, report=WorkerReport()), ("starting", 0)),
        (replace(ALIVE, report=WAITING), ("waiting", 5)),
        (replace(ALIVE, stalls=("it hangs",)), ("polling", 5)),
        (replace(ALIVE, pid=None), ("waiting", 5)),
        (replace(ALIVE, silent=True), ("silent", 1)),
        (replace(ALIVE, silent=True, lent=True), ("lent", 0)),
        (replace(ALIVE, lent=True, exit_code=3), ("failed", 3)),
        (replace(ALIVE, exit_code=0), ("stopped", 0)),
    ],
)
def test_the_state_is_that_of_the_worker_unless_more_is_known(
    worker: WorkerState, state: tuple[str, int]
) -> None:
    assert state_of(worker) == state


def test_nothing_is_told_where_nothing_runs() -> None:
    assert state_of(None) is None
    assert not list(problems_of(None, "stopped", ErrorReport(error="of long ago")))


def test_an_error_is_a_problem_while_it_holds_something_up() -> None:
    error = ErrorReport(error="the database is away")
    waiting = replace(ALIVE, report=WAITING)
    assert list(problems_of(waiting, "waiting", error)) == ["the database is away"]
    assert list(problems_of(None, "failed", error)) == ["the database is away"]
    assert not list(problems_of(ALIVE, "polling", error))


def test_a_worker_that_says_nothing_or_died_is_a_problem() -> None:
    (mute,) = problems_of(replace(ALIVE, mute="8"), "silent", None)
    assert "process 8" in mute
    assert list(problems_of(replace(ALIVE, silent=True), "silent", None))
    (died,) = problems_of(replace(ALIVE, pid=None, died_with=-9), "waiting", None)
    assert "exit code -9" in died


def test_a_state_comes_over_the_control_socket_as_it_was() -> None:
    source = StreamReport(resume="0/1000", ops=3)
    worker = WorkerState(
        report=WorkerReport(state="streaming", source=source),
        pid=7,
        exit_code=3,
        died_with=-9,
        lent=True,
        silent=True,
        stalls=("it hangs",),
    )
    line = dumps(worker_document(replace(worker, heard_at=1.0, mute="8")))
    assert worker_of(loads(line)) == worker
    found = loads(line)
    assert (found["state"], found["ops"], found["pid"]) == ("streaming", 3, 7)
    assert worker_of({}) == WorkerState()
