"""The control socket: asked, lent, and given back however the borrower ends."""

import contextlib
import selectors
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.deadline import wait_until
from walstream.errors import ConfigError, Transient
from walstream.service.control_server import ControlServer
from walstream.service.worker_order import WorkerRequest
from walstream.sources.report import WorkerAnswer
from walstream.state.control import ask, borrowed
from walstream.state.control_message import (
    BackfillRequest,
    DebugAnswer,
    DebugRequest,
    ReloadAnswer,
    ReloadRequest,
)
from walstream.state.lock import FolderLock
from walstream.status.instance import Instance
from walstream.status.instance import running as instance

BORROW = """
import sys
from pathlib import Path
from walstream.state.control import borrowed
with borrowed(Path(sys.argv[1]), "app", 10.0) as running:
    print("mine", running, flush=True)
    sys.stdin.read()
"""


DONE = WorkerAnswer("", 0)
INSTANCE = Instance(7, 5.0)
RELOADED = ReloadAnswer(("memory",))


class Sources:
    """A supervisor of one source, whose worker ends when told."""

    def __init__(self) -> None:
        self.lent: list[str] = []
        self.back: list[str] = []
        self.requests: list[WorkerRequest] = []
        self.said: WorkerAnswer | None = DONE
        self.ended = threading.Event()
        self.ended.set()

    def status(self) -> Instance:
        return INSTANCE

    def reload(self) -> ReloadAnswer:
        return RELOADED

    def set_debug(self, on: bool) -> str:
        return "debug" if on else "info"

    def pass_on(self, source: str, word: str, request: WorkerRequest) -> str:
        if source != "app":
            return "no such source"
        assert word == "backfill"
        self.requests.append(request)
        return ""

    def answer(self, source: str, number: int) -> WorkerAnswer | None:
        assert source == "app"
        assert number == self.requests[-1].number
        return self.said

    def lend(self, source: str) -> str:
        if source != "app":
            return "no such source"
        self.lent.append(source)
        return ""

    def is_lent(self, _source: str) -> bool:
        return self.ended.is_set()

    def take_back(self, source: str) -> None:
        self.back.append(source)


@contextmanager
def running(folder: Path) -> Iterator[Sources]:
    """Serve as an instance does: with the folder's lock, from a loop."""
    sources = Sources()
    stop = threading.Event()

    def loop() -> None:
        lock = FolderLock(folder)
        lock.acquire()
        with selectors.DefaultSelector() as selector:
            server = ControlServer(folder, selector, sources)
            server.open()
            serving.set()
            while not stop.is_set():
                for key, _ in selector.select(0.01):
                    key.data()
                server.tick()
            server.close()
        lock.release()

    serving = threading.Event()
    thread = threading.Thread(target=loop)
    thread.start()
    serving.wait(10)
    try:
        yield sources
    finally:
        stop.set()
        thread.join()


def test_nobody_answers_where_nothing_runs(tmp_path: Path) -> None:
    assert instance(tmp_path / "none") is None
    assert instance(tmp_path) is None


def test_a_running_instance_tells_its_status(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 40)  # longer than a socket's address may be
    with running(folder):
        assert instance(folder) == INSTANCE
        assert (folder / "control.sock").stat().st_mode & 0o777 == 0o600
    assert not (folder / "control.sock").exists()


def test_a_running_instance_logs_more_when_it_is_told_so(tmp_path: Path) -> None:
    with running(tmp_path):
        assert ask(tmp_path, DebugRequest(on=True), 30.0) == DebugAnswer("debug")
        assert ask(tmp_path, DebugRequest(on=False), 30.0) == DebugAnswer("info")


def test_a_running_instance_reloads_and_says_what_that_changed(tmp_path: Path) -> None:
    assert ask(tmp_path, ReloadRequest(), 1.0) is None
    with running(tmp_path):
        assert ask(tmp_path, ReloadRequest(), 30.0) == RELOADED


def test_without_an_instance_the_lock_is_taken(tmp_path: Path) -> None:
    with borrowed(tmp_path, "app", 30.0) as runs:
        assert not runs
        with pytest.raises(ConfigError, match="in use by process"):
            FolderLock(tmp_path).acquire(wait_s=0.0)
    free = FolderLock(tmp_path)
    free.acquire(wait_s=0.0)
    free.release()


def test_a_source_is_lent_when_its_worker_has_ended(tmp_path: Path) -> None:
    with running(tmp_path) as sources:
        sources.ended.clear()
        threading.Timer(0.2, sources.ended.set).start()
        with borrowed(tmp_path, "app", 30.0) as runs:
            assert runs
            assert sources.ended.is_set()
            assert sources.back == []
        wait_until(lambda: sources.back == ["app"], 5, "it is given back")


def test_a_borrower_that_is_killed_gives_it_back(tmp_path: Path) -> None:
    with running(tmp_path) as sources:
        command = [sys.executable, "-c", BORROW, str(tmp_path)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"mine True\n"
            with (
                pytest.raises(ConfigError, match="another command is using it"),
                borrowed(tmp_path, "app", 30.0),
            ):
                pass
            assert sources.back == []
            process.kill()
        wait_until(lambda: sources.back == ["app"], 5, "it is given back")
        with borrowed(tmp_path, "app", 30.0):
            assert sources.lent == ["app", "app"]


def test_a_worker_that_does_not_end_is_said(tmp_path: Path) -> None:
    with running(tmp_path) as sources:
        sources.ended.clear()
        with (
            pytest.raises(Transient, match="does not answer"),
            borrowed(tmp_path, "app", 0.1),
        ):
            pass
        wait_until(lambda: sources.back == ["app"], 5, "it is given back")


@pytest.mark.parametrize(
    ("request_", "answer"),
    [
        (b"nonsense\n", b"expected"),
        (b"[1]\n", b"expected"),
        (b'{"do": "explode"}\n', b"expected"),
        (b'{"do": "debug", "on": "off"}\n', b"expected"),
        (b'{"do": "borrow", "source": ["x"]}\n', b"expected"),
        (b'{"do": "borrow", "source": "x"}\n', b"no such source"),
        (b"x" * 10_000, b""),
        (b"", b""),
    ],
)
def test_what_is_no_request_harms_nobody(
    tmp_path: Path, request_: bytes, answer: bytes
) -> None:
    with running(tmp_path) as sources:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(tmp_path / "control.sock"))
            connection.settimeout(30)
            connection.sendall(request_)
            connection.shutdown(socket.SHUT_WR)
            with (
                connection.makefile("rb") as lines,
                contextlib.suppress(ConnectionResetError),
            ):
                assert answer in lines.read()
        assert instance(tmp_path) == INSTANCE
        assert sources.lent == []


def test_a_predecessors_socket_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "control.sock"))
    with running(tmp_path):
        assert instance(tmp_path) == INSTANCE


def test_a_silent_caller_holds_up_nobody(tmp_path: Path) -> None:
    with running(tmp_path):
        idle = [socket.socket(socket.AF_UNIX) for _ in range(20)]
        for connection in idle:
            connection.connect(str(tmp_path / "control.sock"))
        assert instance(tmp_path) == INSTANCE
        for connection in idle:
            connection.close()


BACKFILL = BackfillRequest("app", ("s.t",), replace=True)


def test_a_backfill_is_answered_when_the_worker_has_it(tmp_path: Path) -> None:
    with running(tmp_path) as sources:
        sources.said = None
        with ThreadPoolExecutor(1) as thread:
            asked = thread.submit(ask, tmp_path, BACKFILL, 5.0)
            wait_until(lambda: sources.requests, 5, "it is passed on")
            assert not asked.done()
            sources.said = DONE
            assert asked.result(5)
        ask(tmp_path, BACKFILL, 5.0)
    assert sources.requests == [
        WorkerRequest(number, ("s.t",), replace=True) for number in (1, 2)
    ]


def test_a_backfill_that_is_refused_says_why(tmp_path: Path) -> None:
    with running(tmp_path) as sources:
        sources.said = WorkerAnswer("the disk is full", 5)
        with pytest.raises(Transient, match="'app': the disk is full"):
            ask(tmp_path, BACKFILL, 5.0)
        with pytest.raises(ConfigError, match="no such source"):
            ask(tmp_path, replace(BACKFILL, source="other"), 30.0)


def test_an_instance_without_a_socket_does_not_answer(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    lock.acquire()
    with pytest.raises(Transient, match="does not answer"):
        ask(tmp_path, BACKFILL, 5.0)
    lock.release()


def test_nobody_is_asked_where_none_runs(tmp_path: Path) -> None:
    assert ask(tmp_path, BACKFILL, 5.0) is None
