"""A source is lent and comes back, whatever ends meanwhile. Needs no server."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.deadline import wait_until
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream
from walstream.state.control import borrowed
from walstream.state.lock import holder
from walstream.status.instance import running
from walstream.testing.servers.port import free_port

_COMMAND = Path(sys.executable).with_name("walstream")


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Walstream]:
    """Run one whose PostgreSQL is away: its worker tries again for ever."""
    dsn = f"postgresql://me@127.0.0.1:{free_port()}/none"
    made = Walstream(dsn, "127.0.0.1:1", tmp_path, "x.", top={"shutdown_timeout": "2s"})
    made.start().until("trying again")
    wait_until(lambda: _state(made) == "waiting", 10, "its worker reports")
    yield made
    made.close()


def _folder(walstream: Walstream) -> Path:
    return walstream.folder / "state"


def _state(walstream: Walstream) -> object:
    found = running(_folder(walstream))
    return found and found.sources["app"].report.state


def _stopping(walstream: Walstream) -> bool:
    found = running(_folder(walstream))
    return bool(found and found.stopping)


def test_a_stop_waits_for_who_borrowed_a_source(waiting: Walstream) -> None:
    with borrowed(_folder(waiting), "app", 20):
        waiting.signal(signal.SIGTERM)
        wait_until(lambda: _stopping(waiting), 5, "it is stopping")
        assert waiting.running
        assert holder(_folder(waiting)) == str(waiting.pid)
    assert waiting.wait() == 0


def test_a_second_signal_waits_for_nobody(waiting: Walstream) -> None:
    with borrowed(_folder(waiting), "app", 20):
        waiting.signal(signal.SIGTERM)
        wait_until(lambda: _stopping(waiting), 5, "it is stopping")
        waiting.signal(signal.SIGTERM)
        assert waiting.wait() == 0


def test_a_stop_while_the_worker_drains_for_a_borrower_ends(waiting: Walstream) -> None:
    (worker,) = waiting.workers()
    os.kill(worker, signal.SIGSTOP)  # it does not hear that it is to end
    borrow = (
        f"from pathlib import Path; from walstream.state.control import borrowed\n"
        f"with borrowed(Path({str(_folder(waiting))!r}), 'app', 60): input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", borrow], stdin=subprocess.PIPE
    ) as borrower:
        wait_until(lambda: _lent(waiting), 5, "it is asked for")
        waiting.signal(signal.SIGTERM)
        wait_until(lambda: _stopping(waiting), 5, "it is stopping")
        os.kill(worker, signal.SIGCONT)
        wait_until(lambda: not waiting.workers(), 10, "the worker ends")
        borrower.kill()
    assert waiting.wait() == 0


def _lent(walstream: Walstream) -> bool:
    found = running(_folder(walstream))
    return bool(found and found.sources["app"].lent)


def test_an_instance_that_does_not_answer_is_not_called_stopped(
    waiting: Walstream,
) -> None:
    waiting.signal(signal.SIGSTOP)
    try:
        done = verb(waiting.configuration, "status", "--json")
    finally:
        waiting.signal(signal.SIGCONT)
    (source,) = json.loads(done.stdout)["sources"]
    assert done.returncode == 1
    assert source["state"] == "silent"
    assert f"process {waiting.pid} holds the state folder" in source["problems"][0]
    assert waiting.terminate() == 0
