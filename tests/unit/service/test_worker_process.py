"""What a supervisor makes of a worker's words. How it ends: tests/fault."""

import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from tests.support.deadline import wait_until
from tests.unit.service.http.conftest import config
from walstream.config.run_options import Options
from walstream.service.worker_process import WorkerProcess
from walstream.sources.report import (
    ErrorReport,
    StreamReport,
    WorkerReport,
    encode,
)
from walstream.telemetry.counts import ProcessCounts, SourceCounts


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    made = WorkerProcess(config(), "app", Options())
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


def heard(worker: WorkerProcess, state: str, turn_s: float, silent_s: float) -> None:
    """Let it have started long ago, and have reported so long ago."""
    worker.history.started_at -= 100
    worker.history.heard_at = time.monotonic() - silent_s
    worker.history.report = WorkerReport(
        state=state, source=StreamReport(turn_s=turn_s)
    )


def test_what_a_process_counted_outlives_it_and_its_death_counts(
    worker: WorkerProcess,
) -> None:
    first = ProcessCounts(metrics=SourceCounts(poisoned=5), errors={"transient": 1})
    worker.history.hear(encode(WorkerReport(), first), time.monotonic())
    assert worker.counted() == first
    end(worker)
    assert worker.counted() == replace(first, deaths=1)


@contextmanager
def debug_logged() -> Iterator[list[Any]]:
    """Capture what is logged from level debug on, whatever a test before configured."""
    before = structlog.get_config()
    structlog.reset_defaults()
    try:
        with capture_logs() as said:
            yield said
    finally:
        structlog.configure(**before)


def test_a_report_that_is_cut_changes_nothing(worker: WorkerProcess) -> None:
    line = encode(WorkerReport(state="streaming"), ProcessCounts(errors={"x": 1}))
    worker._take_in(line)  # noqa: SLF001 - as of its pipe
    with debug_logged() as said:
        worker._take_in(line[:20])  # noqa: SLF001
    assert worker.report == WorkerReport(state="streaming")
    assert worker.counted().errors == {"x": 1}
    assert [one["event"] for one in said] == ["a report cannot be read"]


def test_what_is_known_of_a_process_is_not_said_of_its_absence(
    worker: WorkerProcess,
) -> None:
    error = ErrorReport(error="away")
    heard(worker, "streaming", turn_s=12.0, silent_s=10.0)
    worker.history.report = replace(worker.report or WorkerReport(), error=error)
    state = worker.state()
    assert (worker.hangs, state.silent, state.died_with) == (True, True, None)
    assert state.stalls
    end(worker)
    state = worker.state()
    assert (worker.hangs, state.silent, state.stalls, state.died_with) == (
        False,
        False,
        (),
        -9,
    )
    assert state.report == WorkerReport()
    assert worker.knowledge() == replace(
        state, report=WorkerReport(error=error, source=StreamReport())
    )


@pytest.mark.parametrize(
    ("state", "turn_s", "silent_s", "killed"),
    [
        # their sum counts; the test itself may take some seconds
        ("streaming", 15.0, 5.0, False),
        ("streaming", 25.5, 5.0, True),
        ("waiting", 600.0, 20.0, False),
        ("waiting", 600.0, 31.0, True),
    ],
)
def test_one_that_hangs_for_too_long_is_killed(
    worker: WorkerProcess, state: str, turn_s: float, silent_s: float, *, killed: bool
) -> None:
    heard(worker, state, turn_s, silent_s)
    worker.end_hanging(30.0)
    assert worker._pipe is not None  # noqa: SLF001
    process = worker._pipe.process  # noqa: SLF001 - what is left of it
    if killed:
        assert process.wait(30) == -signal.SIGKILL
    else:
        assert process.poll() is None


def test_one_that_cannot_be_started_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr("walstream.service.restart_schedule._FIRST_S", 25.0)
    made = WorkerProcess(config(), "app", Options())
    with monkeypatch.context() as full:
        full.setattr(subprocess, "Popen", refused)
        assert not made.start_if_due()
        assert made.exit_code is None
    assert not made.start_if_due()  # it waits a little
    made.restarts._start_at -= 25  # noqa: SLF001 - time went by
    assert made.start_if_due()
    end(made)


def test_one_that_drains_has_the_time_that_it_was_started_with(
    worker: WorkerProcess,
) -> None:
    shorter = config().model_copy(update={"shutdown_timeout": 1.0})
    assert worker.take(shorter) == ["shutdown_timeout"]
    worker.drain._renewed_at -= 15  # noqa: SLF001 - time went by
    worker.hurry()
    assert worker._pipe is not None  # noqa: SLF001
    process = worker._pipe.process  # noqa: SLF001
    time.sleep(0.2)
    assert process.poll() != -signal.SIGKILL
    worker.drain._renewed_at -= 30  # noqa: SLF001 - all of its time
    worker.hurry()
    assert process.wait(10) is not None


def test_consents_are_of_the_first_stream_alone() -> None:
    """A failover of a later day is not the one that somebody looked at."""
    worker = WorkerProcess(config(), "app", Options(accept_timeline=True))
    for told, given in (
        (WorkerReport(state="backfilling"), True),
        (WorkerReport(flowed=True), False),
    ):
        worker._take_in(encode(told, ProcessCounts()))  # noqa: SLF001 - as of its pipe
        assert worker.order.issue().options.accept_timeline is given


def test_a_stream_of_a_moment_has_the_grace_of_a_reload() -> None:
    """It ended before a report said `streaming`, as a password was changed."""
    worker = WorkerProcess(config(), "app", Options())
    refused = ErrorReport(error="28P01", exit_code=4, final=True, renewable=True)
    told = WorkerReport(state="failed", flowed=True, error=refused)
    worker._take_in(encode(told, ProcessCounts()))  # noqa: SLF001 - as of its pipe
    assert worker.try_again()


def test_a_process_that_follows_ends_where_the_first_one_would() -> None:
    worker = WorkerProcess(config(), "app", Options(until_lsn="now"))
    told = WorkerReport(source=StreamReport(until="0/A"))
    worker._take_in(encode(told, ProcessCounts()))  # noqa: SLF001 - as of its pipe
    assert worker.order.issue().options.until_lsn == "0/A"


def waiting(until: str) -> WorkerProcess:
    """Give one that is between two tries."""
    return WorkerProcess(config(), "app", Options(until_lsn=until))


@pytest.mark.parametrize(("until", "code"), [("", 0), ("now", 5)])
def test_a_stop_between_two_tries_is_none_of_the_end_that_was_wanted(
    until: str, code: int
) -> None:
    for end_it in (
        WorkerProcess.stop,
        WorkerProcess.retire,
        WorkerProcess.give_up,
    ):
        worker = waiting(until)
        with capture_logs() as said:
            end_it(worker)
        assert worker.exit_code == code
        assert [one["event"][:26] for one in said] == [
            "stopped before the LSN was"
        ] * bool(code)
    worker = waiting(until)
    worker.lend()
    worker.take_back(stopping=True)
    assert worker.exit_code == code


def test_one_that_had_come_to_its_end_is_not_cut_short() -> None:
    worker = waiting("now")
    worker.restarts.exit_code = 0
    worker.stop()
    worker.retire()
    assert worker.exit_code == 0


@pytest.mark.parametrize(("until", "code"), [("", 0), ("now", 5)])
def test_one_that_drains_for_good_did_not_come_to_its_end(
    until: str, code: int
) -> None:
    worker = waiting(until)
    assert worker.start_if_due()
    worker.retire()
    end(worker)
    assert worker.exit_code == code
