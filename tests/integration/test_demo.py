"""The real `walstream demo`, whole and cut short: right figures, nothing left."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.server_origin import needs_own_servers
from walstream.testing.servers.process import alive, descendants

COMMAND = Path(sys.executable).with_name("walstream")
FIGURE = re.compile(r"^(\w[\w ]*?) {2,}([\d,]+) ", re.MULTILINE)


@pytest.fixture(autouse=True)
def _embedded() -> None:
    needs_own_servers()


@pytest.fixture
def workspace() -> Iterator[Path]:
    """Make a temporary folder that the account of the servers may enter too."""
    folder = Path(tempfile.mkdtemp(prefix="walstream-test-demo-", dir="/var/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


class Demo:
    """A running demo, read line by line, and all the processes seen in it."""

    def __init__(self, workspace: Path, *options: str) -> None:
        self.text = ""
        self.family: set[int] = set()
        self._workspace = workspace
        self._process = subprocess.Popen(
            [COMMAND, "demo", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(workspace)},
            text=True,
        )

    def read_until(self, found: Callable[[str], object]) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.text += line
            if found(line):
                self.family.update(descendants(self._process.pid))
                return line
        raise AssertionError(f"ended too early:\n{self.text}")

    def end(self, number: signal.Signals | None = None) -> int:
        if number is not None:
            self._process.send_signal(number)
        rest, _ = self._process.communicate(timeout=90)
        self.text += rest
        return self._process.returncode

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def folders(self) -> list[str]:
        return sorted(one.name.split("-")[2] for one in self._workspace.iterdir())

    def assert_nothing_is_left(self) -> None:
        wait_until(lambda: not any(map(alive, self.family)), 5, "all processes end")
        assert self.folders == []


@pytest.fixture
def demo(workspace: Path) -> Iterator[Callable[..., Demo]]:
    started: list[Demo] = []

    def start(*options: str) -> Demo:
        started.append(Demo(workspace, *options))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def test_demo_kills_the_worker_misses_nothing_and_leaves_nothing(
    demo: Callable[..., Demo],
) -> None:
    shown = demo("--seconds", "6", "--rate", "100", "--seed", "11")
    shown.read_until(lambda line: line.startswith("  insert"))
    assert shown.folders == ["demo", "kafka", "postgresql"]
    before = set(shown.family)
    line = shown.read_until(lambda line: "kill -9" in line)
    worker = int(re.findall(r"kill -9 (\d+)", line)[0])

    assert worker in before
    assert not alive(worker)
    shown.read_until(lambda line: "was started by walstream" in line)
    assert shown.end() == 0, shown.text

    figures = {
        name: int(text.replace(",", "")) for name, text in FIGURE.findall(shown.text)
    }
    assert figures["Missing"] == 0
    assert figures["Changes written"] == figures["Changes delivered"] > 200
    assert figures["Rows compared"] > 100
    assert "Nothing is missing." in shown.text
    assert "seed 11" in shown.text
    shown.assert_nothing_is_left()


@pytest.mark.parametrize(
    ("number", "exit_code"),
    [
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.fault_long),
        (signal.SIGINT, 130),
    ],
)
def test_demo_cut_short_leaves_nothing(
    demo: Callable[..., Demo], number: signal.Signals, exit_code: int
) -> None:
    shown = demo("--rate", "50")
    shown.read_until(lambda line: line.startswith("  insert"))
    assert len(shown.folders) == 3
    assert len(shown.family) > 5
    assert shown.end(number) == exit_code, shown.text
    assert "Traceback" not in shown.text
    shown.assert_nothing_is_left()


def test_demo_cut_short_while_it_starts_leaves_nothing(
    demo: Callable[..., Demo],
) -> None:
    shown = demo()
    shown.read_until(lambda line: "PostgreSQL started" in line)
    assert shown.end(signal.SIGTERM) == 143, shown.text
    shown.assert_nothing_is_left()


@pytest.mark.fault_long
def test_demo_whose_server_dies_says_so_and_leaves_nothing(
    demo: Callable[..., Demo], workspace: Path
) -> None:
    shown = demo("--rate", "50")
    shown.read_until(lambda line: line.startswith("  insert"))
    (pid_file,) = workspace.glob("*-postgresql-*/data/postmaster.pid")
    os.kill(int(pid_file.read_text().split()[0]), signal.SIGKILL)
    assert shown.end() == 1, shown.text
    assert "PostgreSQL ended in the middle of the demo" in shown.text
    shown.assert_nothing_is_left()


@pytest.mark.fault_long
@pytest.mark.takes(16)
def test_kept_demo_runs_until_it_is_told_and_tells_how_to_connect(
    demo: Callable[..., Demo],
) -> None:
    shown = demo("--keep", "--seconds", "3", "--rate", "50")
    dsn = shown.read_until(lambda line: "postgresql://" in line).split()[-1]
    shown.read_until(lambda line: "Enter or Ctrl-C" in line)
    select = subprocess.run(
        [sys.executable, "-c", _SELECT, dsn],
        check=False,
        capture_output=True,
        text=True,
    )
    assert select.stdout.strip() == "t", select.stderr
    assert shown.end(signal.SIGINT) == 0, shown.text
    shown.assert_nothing_is_left()


_SELECT = """
import sys, psycopg
with psycopg.connect(sys.argv[1]) as connection:
    active = "SELECT active::text::char FROM pg_replication_slots"
    print(connection.execute(active).fetchone()[0])
"""
