"""A wish to end is heard even while the main thread is held up, with code 0."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_HEAD = """
import ctypes, os, signal, sys, time
from walstream.cli.tail.ending import Ending
"""
_WATCHING = "ended = Ending(1); print('ready', flush=True)\n"
_ASKING = "while not ended(): time.sleep(0.01)\nprint('ended', flush=True)\n"


@contextmanager
def running(body: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", f"{_HEAD}{body}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()  # it has ended, or the test has failed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_is_told_to_who_asks(number: signal.Signals) -> None:
    with running(_WATCHING + _ASKING) as process:
        process.send_signal(number)
        out, error = process.communicate(timeout=10)
        assert (process.returncode, out, error) == (0, "ended\n", "")


def test_process_that_is_held_up_ends_all_the_same() -> None:
    with running(_WATCHING + "ctypes.CDLL(None).sleep(60)") as process:
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=10)
        assert (process.returncode, out, error) == (0, "", "")


@pytest.mark.parametrize("ignored", [False, True])
def test_ignored_signal_stays_ignored(ignored: bool) -> None:
    ignore = "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" if ignored else ""
    taken = "print(signal.SIGHUP in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    with running(ignore + _WATCHING + taken) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{not ignored}\n"


def test_reader_that_left_is_noticed_without_writing() -> None:
    with running(_WATCHING + "while not ended(): pass\nos._exit(7)") as process:
        assert process.stdout is not None
        assert process.poll() is None
        process.stdout.close()
        assert process.wait(10) == 7


def test_file_is_never_left(tmp_path: Path) -> None:
    body = "print(Ending(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT))())"
    command = [sys.executable, "-c", f"{_HEAD}{body}", str(tmp_path / "out")]
    assert subprocess.check_output(command, text=True) == "False\n"
