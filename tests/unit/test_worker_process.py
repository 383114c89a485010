"""What a supervisor makes of a worker's words. How it ends: tests/fault."""

from collections.abc import Iterator

import pytest

from tests.unit.http.conftest import config
from tests.waiting import wait_until
from walstream.worker_process import WorkerProcess


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    made = WorkerProcess(config(), "app", {})
    assert made.start_if_due()
    try:
        yield made
    finally:
        end(made)


def end(worker: WorkerProcess) -> None:
    """Kill its process."""
    worker.kill()

    def ended() -> bool:
        worker.reap(stopping=False)
        return worker.pid is None

    wait_until(ended, 10, "it ended")


def test_who_said_nothing_yet_is_starting_and_who_says_nothing_more_silent(
    worker: WorkerProcess,
) -> None:
    worker._started_at -= 10  # noqa: SLF001 - time went by
    assert not worker.report()["silent"]
    assert worker.knowledge()["heard_at"] is None
    worker.heard_at = worker._started_at + 1  # noqa: SLF001
    assert worker.report()["silent"]


def test_counts_go_on_with_the_next_process(worker: WorkerProcess) -> None:
    worker.state = {"metrics": {"ops": 5}, "errors": {"transient": 1}}
    assert worker.counted()["metrics"] == {"ops": 5}
    end(worker)
    assert worker.counted()["metrics"] == {"ops": 5}
    worker.state = {"metrics": {"ops": 2}}
    found = worker.counted()
    assert found == {"metrics": {"ops": 7}, "errors": {"transient": 1}, "deaths": 1}
