"""Ctrl-C and SIGTERM end a run of the tests, tried with a run inside this one."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.server_origin import needs_own_servers
from walstream.testing.servers.process import alive

ROOT = Path(__file__).parents[2]
_ENDS_S = 15.0  # on a machine that is busy; else in one or two
_AS_MAKE_TEST = ["-n", "2", "--one-kafka", "--beside", "sleep 600"]
_CONFTEST = """
pytest_plugins = [
    "tests.support.fixtures.postgres",
    "tests.support.fixtures.kafka",
    "tests.support.project.interruption",
    "tests.support.project.check_beside",
]
"""
_TESTS = """
import json
import os
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from tests.support.programs.fork import ForkServer
from tests.support.servers.small_disk import small_disk
from walstream.testing.servers.process import descendants

def test_that_passes():
    pass

def test_that_fails():
    assert "this" == "that"

@pytest.fixture
def disk(tmp_path):
    try:
        with small_disk(Path("disk").absolute()) as made:
            yield made
    except pytest.skip.Exception:
        yield None

def test_that_hangs_in_librdkafka(postgres18, kafka, disk):
    forks = ForkServer({})
    forks.start("help", stdout=Path("help")).wait()
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "g"})
    consumer.subscribe(["t"])
    consumer.poll(1)
    made = Path("made.json")
    made.with_suffix(".new").write_text(json.dumps(descendants(os.getpid())))
    made.with_suffix(".new").rename(made)
    while True:
        consumer.poll(600)
"""


@pytest.mark.parametrize(
    ("number", "to_all", "flags"),
    [
        pytest.param(
            *(signal.SIGINT, True, _AS_MAKE_TEST),
            id="ctrl-c-on-workers",
        ),
        pytest.param(
            *(signal.SIGTERM, False, ["-n", "2"]),
            id="sigterm-on-workers",
            marks=pytest.mark.fault_long,
        ),
        pytest.param(
            *(signal.SIGTERM, False, []),
            id="sigterm-on-one-process",
            marks=pytest.mark.fault_long,
        ),
    ],
)
def test_a_signal_ends_the_run_quietly_with_all_its_servers(
    tmp_path: Path, number: signal.Signals, to_all: bool, flags: list[str]
) -> None:
    needs_own_servers()
    (tmp_path / "conftest.py").write_text(_CONFTEST)
    (tmp_path / "test_inner.py").write_text(_TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    output = tmp_path / "output"
    with output.open("wb") as file:
        run = subprocess.Popen(
            [
                *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
                *("-p", "no:randomly", *flags),
            ],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
            stdout=file,
            stderr=file,
            start_new_session=True,  # a group, as a terminal has one
        )
    made = tmp_path / "made.json"
    try:
        wait_until(lambda: made.exists() or run.poll() is not None, 120, "servers run")
        assert made.exists(), output.read_text()
        servers = json.loads(made.read_text())
        assert len([pid for pid in servers if alive(pid)]) > 2
        sent = time.monotonic()
        (os.killpg if to_all else os.kill)(run.pid, number)
        code = run.wait(120)
        took = time.monotonic() - sent
    finally:
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
    text = output.read_text()
    assert code == 128 + number, text
    assert took < _ENDS_S, text
    assert not [pid for pid in servers if alive(pid)]
    assert not _left(str(temporary))
    assert not (tmp_path / "disk").is_mount()
    assert not list(temporary.glob("walstream-local-*"))
    # what had failed is told, and nothing else
    assert "FAILED test_inner.py::test_that_fails" in text
    assert text.rstrip().splitlines()[-1].strip("! ").startswith(number.name), text
    assert "%3|" not in text
    assert len(text.splitlines()) < 40, text


def _left(word: str) -> list[str]:
    """Find processes that have a word in their environment or their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            texts = [(process / name).read_bytes() for name in ("environ", "cmdline")]
        except OSError:
            continue
        if any(word.encode() in text for text in texts):
            found.append(texts[1].decode(errors="replace"))
    return found
