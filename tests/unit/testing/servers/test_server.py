"""What the servers share, with a sleeping shell for a server."""

import signal
from pathlib import Path

import pytest

from walstream.errors import Transient
from walstream.testing.servers.process import Child, alive
from walstream.testing.servers.server import LocalServer, SingleProcess


class Sleeper(LocalServer):
    name = "Sleeper"

    def __init__(self, script: str = "sleep 100") -> None:
        super().__init__(None)
        self._script = script

    def _start(self) -> None:
        self._child = Child(["/bin/sh", "-c", self._script], log=self.log)
        if "100" not in self._script:
            self._child.wait(10)
            raise self._failure("does not start")

    def stop(self) -> None:
        self._running_child().send(signal.SIGTERM)
        self._running_child().wait(10)


def test_leaving_the_block_ends_the_process_and_deletes_the_folder() -> None:
    with Sleeper() as server:
        pid = server.pid
        assert alive(pid)
        assert server.log.exists()
    assert not alive(pid)
    assert not server.folder.exists()


def test_server_can_be_closed_twice() -> None:
    server = Sleeper()
    server.close()
    server.close()
    assert not server.folder.exists()


def test_starting_a_running_server_does_nothing() -> None:
    with Sleeper() as server:
        pid = server.pid
        server.start()
        assert server.pid == pid


def test_restart_is_another_process() -> None:
    with Sleeper() as server:
        pid = server.pid
        server.restart()
        assert server.running
        assert server.pid != pid


def test_failed_start_shows_the_end_of_the_log_and_deletes_the_folder() -> None:
    server = Sleeper("echo out of cheese")
    with pytest.raises(Transient, match=r"(?s)does not start.*out of cheese"), server:
        pass
    assert not server.folder.exists()


def test_stopped_server_has_no_pid() -> None:
    with Sleeper() as server:
        server.kill()
        with pytest.raises(Transient, match="not running"):
            _ = server.pid


def test_log_is_named_after_the_server() -> None:
    server = Sleeper()
    assert server.log == Path(server.folder, "sleeper.log")
    server.close()


class Busy(SingleProcess):
    """Finds its first port taken."""

    name = "Busy"

    def __init__(self) -> None:
        super().__init__(None)
        self.chosen = 0

    def _choose_ports(self) -> None:
        self.chosen += 1

    def _launch(self) -> Child:
        taken = "echo Address already in use"
        script = taken if self.chosen == 1 else "exec sleep 100"
        return Child(["/bin/sh", "-c", script], log=self.log)

    def _ready(self) -> bool:
        return self.chosen > 1


def test_taken_port_is_exchanged_at_the_first_start_alone() -> None:
    with Busy() as server:
        assert server.chosen == 2
        server.restart()
        assert server.chosen == 2


def test_frozen_process_can_be_stopped() -> None:
    with Busy() as server:
        server.freeze()
        server.stop()
        assert not server.running
