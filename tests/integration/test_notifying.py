"""What systemd hears of a run: no server is needed, one that is away is enough."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.deadline import wait_until
from tests.support.programs.walstream import SOURCE, Walstream

AWAY = "postgresql://nobody@127.0.0.1:1/none"


class Ear:
    """systemd's end of the socket."""

    def __init__(self, path: Path) -> None:
        self.inlet = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.inlet.bind(str(path))
        self.inlet.setblocking(False)
        self.heard: list[list[str]] = []  # the lines of each datagram

    def hears(self, line: str) -> bool:
        try:
            while True:
                self.heard.append(self.inlet.recv(4096).decode().split("\n"))
        except BlockingIOError:
            return any(line in lines for lines in self.heard)


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Ear]:
    made = Ear(tmp_path / "notify")
    yield made
    made.inlet.close()


@pytest.fixture
def walstream(ear: Ear, tmp_path: Path) -> Iterator[Walstream]:
    """Run on a database that is not there, watched every second."""
    del ear
    notify = str(tmp_path / "notify")
    made = Walstream(AWAY, "127.0.0.1:1", tmp_path / "run", "x.")
    made.environment = {"NOTIFY_SOCKET": notify, "WATCHDOG_USEC": "1000000"}
    made.start()
    yield made
    made.close()


def test_an_outage_is_ready_and_feeds_and_a_worker_that_hangs_is_replaced(
    walstream: Walstream, ear: Ear
) -> None:
    wait_until(lambda: ear.hears(f"STATUS={SOURCE} waiting"), 30, "it waits")
    assert ear.heard[0][0] == "READY=1"
    ear.heard.clear()
    wait_until(lambda: ear.hears("WATCHDOG=1"), 10, "an outage starves nothing")
    worker = walstream.worker_pid()
    os.kill(worker, signal.SIGSTOP)
    hangs = f"STATUS=hangs: {SOURCE}"
    wait_until(lambda: ear.hears(hangs), 10, "it is seen to hang")
    assert [hangs] in ear.heard  # and nothing that feeds
    ear.heard.clear()
    wait_until(lambda: ear.hears("WATCHDOG=1"), 10, "it goes on with another")
    assert walstream.worker_pid() != worker
    assert walstream.terminate() == 0
    assert ear.hears("STOPPING=1")
    assert ear.hears("EXTEND_TIMEOUT_USEC=35000000")  # 20 s, grace, and to leave
