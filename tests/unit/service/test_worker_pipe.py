"""Lines to a worker, and its reports."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.support.deadline import wait_until
from walstream.service.worker_pipe import WorkerPipe

Start = Callable[[str], WorkerPipe]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Let a program of Python stand for the worker."""
    made: list[WorkerPipe] = []
    started = subprocess.Popen

    def begin(program: str) -> WorkerPipe:
        def stand_in(_: object, **given: object) -> "subprocess.Popen[bytes]":
            return started([sys.executable, "-c", program], **given)  # type: ignore[call-overload, no-any-return]

        monkeypatch.setattr(subprocess, "Popen", stand_in)
        made.append(WorkerPipe())
        return made[-1]

    yield begin
    for pipe in made:
        pipe.kill()
        pipe.process.wait()
        pipe.close()


def test_the_last_whole_line_counts(start: Start) -> None:
    pipe = start("import os; os.write(1, b'one\\ntwo\\nthr'); input()")
    wait_until(lambda: pipe.has_more, 10, "it wrote")
    assert pipe.read() == (b"two", True)
    pipe.tell("go on")
    wait_until(lambda: pipe.has_more, 10, "its end can be read")
    assert pipe.read() == (None, False)  # a line that was cut is none


def test_what_was_cut_is_joined(start: Start) -> None:
    pipe = start(
        "import os\nos.write(1, b'ab'); input(); os.write(1, b'c\\n'); input()"
    )
    wait_until(lambda: pipe.has_more, 10, "it wrote")
    assert pipe.read() == (None, True)
    pipe.tell("go on")
    wait_until(lambda: pipe.has_more, 10, "it wrote the rest")
    assert pipe.read() == (b"abc", True)


def test_one_that_has_ended_is_told_nothing_and_closed(start: Start) -> None:
    pipe = start("")
    wait_until(lambda: pipe.poll() is not None, 10, "it ended")
    pipe.tell("stop")
    pipe.close()
    assert pipe.stdout is None
    assert not pipe.has_more
    assert pipe.read() == (None, False)


def test_a_kill_is_in_the_exit_code(start: Start) -> None:
    pipe = start("input()")
    pipe.kill()
    wait_until(lambda: pipe.poll() is not None, 10, "it ended")
    assert pipe.poll() == -signal.SIGKILL
