"""A process ends with the one that started it, however that ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.deadline import wait_until
from walstream.spark.parent_death import signals_held

_CHILD = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", '''
import sys, time
from walstream.spark.parent_death import die_with_parent
die_with_parent(int(sys.argv[1]))
print("tied", flush=True)
time.sleep(60)
''', str(os.getpid())], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


def test_a_killed_parent_takes_its_child_along() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD], stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
        wait_until(lambda: not _lives(child), 10, "the child ends")


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


_CONFIGURATION = """
state = "{folder}/state"
http.listen = ""
sources.app = {{ kind = "postgres", dsn = "host=127.0.0.1 port=1", sinks = ["none"] }}
sinks.none.kind = "discard"
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_of_the_group_ends_no_worker_that_loads_its_modules(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Ctrl-C goes to all processes of a terminal; the supervisor tells its own."""
    configuration = tmp_path / "walstream.toml"
    configuration.write_text(_CONFIGURATION.format(folder=tmp_path), "utf-8")
    command = Path(sys.executable).with_name("walstream")
    with subprocess.Popen(
        [command, "run", "-c", configuration],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as supervisor:
        family = psutil.Process(supervisor.pid)
        wait_until(lambda: bool(family.children()), 20, "a worker begins")
        os.killpg(supervisor.pid, number)
        said, _ = supervisor.communicate(timeout=30)
    assert "Traceback" not in said
    assert supervisor.returncode == 0, said


def test_what_came_meanwhile_is_dropped_or_kept_as_the_child_wants() -> None:
    child = """
import signal, sys
from walstream.spark.parent_death import take_signals
print("begun", flush=True)
sys.stdin.readline()
take_signals(lambda *_: print("asked to end", flush=True))
sys.stdin.readline()
"""
    with (
        signals_held(),
        subprocess.Popen(
            [sys.executable, "-c", child],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
            process.send_signal(number)
        said, _ = process.communicate("\n\n", timeout=20)
    assert (process.returncode, said) == (0, "asked to end\n")
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
