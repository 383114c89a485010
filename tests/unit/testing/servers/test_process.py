"""Child processes, with a shell for a server."""

import os
import signal
import threading
from pathlib import Path

import pytest

from tests.support.deadline import wait_until
from walstream.testing.servers.process import (
    Child,
    alive,
    becomes_ready,
    descendants,
    unwind_on_sigterm,
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


def test_output_goes_to_the_end_of_the_log(log: Path) -> None:
    log.write_text("before\n")
    assert _shell("echo out; echo error >&2", log).wait(10)
    assert log.read_text() == "before\nout\nerror\n"


def test_kill_takes_grandchildren_in_sessions_of_their_own(log: Path) -> None:
    child = _shell("setsid sleep 100 & sleep 100", log)
    wait_until(lambda: len(descendants(child.pid)) == 2, 10, "both sleep")
    family = [child.pid, *descendants(child.pid)]
    child.kill()
    assert not child.running
    assert not any(map(alive, family))


def test_wait_tells_whether_it_ended(log: Path) -> None:
    child = _shell("sleep 100", log)
    assert not child.wait(0.05)
    child.send(signal.SIGTERM)
    assert child.wait(10)


def test_child_outlives_the_thread_that_asked_for_it(log: Path) -> None:
    made: list[Child] = []
    thread = threading.Thread(target=lambda: made.append(_shell("echo; cat", log)))
    thread.start()
    thread.join()
    assert made[0].wait(10)
    assert log.read_text() == "\n"


def test_command_that_cannot_start_shows_in_the_log(log: Path) -> None:
    child = Child(["/nonexistent/server"], log=log)
    assert child.wait(10)
    assert "No such file" in log.read_text()


def test_child_that_ends_early_never_becomes_ready(log: Path) -> None:
    assert not becomes_ready(lambda: False, _shell("exit 1", log), 30)


def test_child_is_ready_as_soon_as_asked_for(log: Path) -> None:
    child = _shell("echo ready; sleep 100", log)
    assert becomes_ready(lambda: log.read_text() == "ready\n", child, 10)
    child.kill()


def test_this_process_is_alive_and_an_impossible_one_is_not() -> None:
    assert alive(os.getpid())
    assert not alive(1 << 30)


def test_sigterm_unwinds_as_an_exception() -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        unwind_on_sigterm()
        with pytest.raises(SystemExit) as caught:
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught.value.code == 128 + signal.SIGTERM


def _shell(script: str, log: Path) -> Child:
    return Child(["/bin/sh", "-c", script], log=log)
