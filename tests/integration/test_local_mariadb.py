"""The throw-away MariaDB, for real: what stays, and that nothing is left."""

import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.mariadb import Mariadb, OwnMariadb
from walstream.errors import Transient
from walstream.testing.servers.mariadb import greets
from walstream.testing.servers.process import alive

ROOT = Path(__file__).parents[2]


def test_mariadb_keeps_port_and_what_was_committed_over_a_kill(
    own_mariadb: OwnMariadb,
) -> None:
    server = own_mariadb(max_connections="13")
    home, port = Mariadb(server), server.port
    home.execute("CREATE DATABASE kept")
    home.execute("CREATE TABLE kept.t (id int) ENGINE = InnoDB")
    home.execute("INSERT INTO kept.t VALUES (1)")

    server.kill()
    assert not greets(port)
    server.start()
    server.restart()

    assert server.port == port
    assert home.fetch("SELECT id FROM kept.t") == [(1,)]
    assert home.fetch("SELECT @@max_connections") == [(13,)]
    assert home.fetch("SELECT @@tmpdir") == [(str(server.folder),)]
    assert Path(f"/proc/{server.pid}").stat().st_uid != 0
    assert server.socket_path.is_socket()


def test_frozen_mariadb_is_silent_until_thawed(own_mariadb: OwnMariadb) -> None:
    server = own_mariadb()
    server.freeze()
    assert not greets(server.port, timeout_s=0.3)
    server.thaw()
    assert greets(server.port)


def test_refused_setting_is_shown_and_nothing_runs(own_mariadb: OwnMariadb) -> None:
    server = own_mariadb()
    server.settings["no_such_setting"] = "1"
    with pytest.raises(Transient, match=r"(?s)does not start.*no_such_setting"):
        server.restart()
    assert not server.running


PARENT = """
    import signal
    from walstream.testing.servers import LocalMariadb
    from walstream.testing.servers.process import unwind_on_sigterm

    unwind_on_sigterm()
    with LocalMariadb() as server:
        print(server.pid, server.folder, flush=True)
        signal.pause()
"""


@pytest.mark.usefixtures("own_mariadb")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_mariadb_ends_with_its_parent(number: signal.Signals) -> None:
    command = [sys.executable, "-c", textwrap.dedent(PARENT)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT
    ) as parent:
        assert parent.stdout is not None
        pid, folder = parent.stdout.readline().split()
        assert alive(int(pid))

        parent.send_signal(number)
        parent.wait(30)

    wait_until(lambda: not alive(int(pid)), 15, "the server has ended")
    if number == signal.SIGKILL:
        shutil.rmtree(folder)  # nobody was left to delete it
    assert not Path(folder).exists()
