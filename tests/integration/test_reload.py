"""The configuration is read again while it runs: by SIGHUP, by the verb, by need."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, OwnPostgres
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream, toml
from walstream.status.instance import running as running_instance
from walstream.status.worker_state import WorkerState
from walstream.testing.servers.port import free_port

_COMMAND = Path(sys.executable).with_name("walstream")
_TABLE = "CREATE TABLE t (id int PRIMARY KEY)"


@pytest.fixture
def running(newest_database: Database, runs: Runs) -> Walstream:
    newest_database.execute(_TABLE)
    return runs(newest_database.dsn).start().streaming()


@pytest.fixture
def newest_database(postgres18: Any) -> Any:
    from tests.support.fixtures.postgres import temporary_database  # noqa: PLC0415

    with temporary_database(postgres18) as fresh:
        yield fresh


def rewrite(walstream: Walstream, **top: Any) -> None:
    walstream.top = {**walstream.top, **top}
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")


def reload(walstream: Walstream) -> subprocess.CompletedProcess[str]:
    return verb(walstream.configuration, "reload")


def answer(port: int, **headers: str) -> int:
    """Ask whether it is ready; give the answer's code."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    with contextlib.closing(connection):
        connection.request("GET", "/ready", headers=headers)
        return connection.getresponse().status


def sources(walstream: Walstream) -> Mapping[str, WorkerState]:
    found = running_instance(walstream.folder / "state")
    assert found is not None
    return found.sources


def test_what_changed_begins_again_and_nothing_comes_twice(
    running: Walstream, newest_database: Database, reader: Reader
) -> None:
    newest_database.execute("INSERT INTO t SELECT generate_series(1, 50)")
    reader.count(50)
    first = running.worker_pid()

    done = reload(running)
    assert (done.returncode, done.stdout) == (0, "nothing changed\n")
    assert running.worker_pid() == first

    rewrite(running, memory="64MiB")
    done = reload(running)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "source 'app' begins again\nchanged: memory\n"
    newest_database.execute("INSERT INTO t SELECT generate_series(51, 100)")
    reader.count(100)
    assert running.worker_pid() != first
    assert running.said("drained")
    assert sources(running)["app"].died_with is None


def test_a_broken_file_is_refused_and_all_goes_on(
    running: Walstream, newest_database: Database, reader: Reader
) -> None:
    first = running.worker_pid()
    rewrite(running, memory="many")
    running.signal(signal.SIGHUP)
    running.until("the new configuration is refused: the old one stays in effect")
    (said,) = running.said("the new configuration is refused")
    assert "memory" in said["error"]
    assert "walstream reload" in said["hint"]
    done = reload(running)
    assert done.returncode == 2
    assert "memory" in done.stderr
    newest_database.execute("INSERT INTO t VALUES (1)")
    reader.count(1)
    assert running.worker_pid() == first


def test_http_answers_by_what_is_read(running: Walstream) -> None:
    port, token = free_port(), "a-token-of-twenty-characters"
    rewrite(running, http={"listen": f"127.0.0.1:{port}"})
    first = running.worker_pid()
    assert reload(running).returncode == 0
    assert answer(port) == 200
    rewrite(running, http={"listen": f"127.0.0.1:{port}", "token": token})
    assert reload(running).returncode == 0
    assert answer(port) == 401
    assert answer(port, authorization=f"Bearer {token}") == 200
    # probes come, and change their address; listen grows at its own port
    probes, others = free_port(), free_port()
    for at in (probes, others):
        told = {"listen": f"0.0.0.0:{port}", "probes": f"127.0.0.1:{at}"}
        rewrite(running, http={**told, "token": token})
        assert reload(running).returncode == 0
        assert (answer(at), answer(port)) == (200, 401)
    with pytest.raises(ConnectionRefusedError):
        answer(probes)
    # where the new address is not available, the old one stays
    with subprocess.Popen(
        [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        text=True,
    ) as other:
        assert other.stdout is not None
        taken = other.stdout.readline().split(" port ")[1].split()[0]
        rewrite(running, http={"listen": f"127.0.0.1:{taken}"})
        done = reload(running)
        other.kill()
    assert (done.returncode, "is not available" in done.stderr) == (2, True)
    assert (answer(others), answer(port)) == (200, 401)
    assert running.worker_pid() == first


def test_a_source_that_came_streams_and_one_that_left_ends(
    newest_database: Database, runs: Runs, reader: Reader
) -> None:
    newest_database.execute(_TABLE)
    topic = f"{runs.prefix}{{source}}.{{table}}"
    running = runs(newest_database.dsn, sink={"topic": topic}).start().streaming()
    document = running.document()
    app = document["sources"]["app"]
    other = {**app, "slot": f"{running.slot}_2", "publication": "other"}
    document["sources"] = {"app": app, "late": other}
    running.configuration.write_text(toml(document), "utf-8")
    done = reload(running)
    assert done.stdout == "source 'late' begins\nchanged: sources.late\n"
    wait_until(
        lambda: sources(running)["late"].report.state == "streaming", 60, "it streams"
    )
    document["sources"] = {"late": other}
    running.configuration.write_text(toml(document), "utf-8")
    done = reload(running)
    assert f"its slot '{running.slot}' keeps WAL until it is dropped" in done.stdout
    wait_until(lambda: list(sources(running)) == ["late"], 60, "the other ended")
    newest_database.execute("INSERT INTO t VALUES (1)")
    (record,) = reader.count(1)
    assert record.topic.endswith("late.t")
    assert running.terminate() == 0


def test_a_terminal_that_hangs_up_drains(
    newest_database: Database, runs: Runs, reader: Reader
) -> None:
    newest_database.execute(_TABLE)
    walstream = runs(newest_database.dsn)
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    pid, terminal = pty.fork()
    if pid == 0:  # pragma: no cover - another program from here on
        os.execv(_COMMAND, [str(_COMMAND), "run", "-c", str(walstream.configuration)])  # noqa: S606
    said = b""
    while b"streaming" not in said:
        said += os.read(terminal, 4096)
    newest_database.execute("INSERT INTO t VALUES (1)")
    reader.count(1)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert running_instance(walstream.folder / "state") is None
    slot = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
    assert newest_database.fetch(slot, walstream.slot) == [(False,)]


@pytest.fixture
def guarded(own_postgres: OwnPostgres, runs: Runs, tmp_path: Path) -> "Guarded":
    return Guarded(own_postgres, runs, tmp_path)


class Guarded:
    """A server whose role `app` needs a password, which walstream reads of a file."""

    def __init__(self, own_postgres: OwnPostgres, runs: Runs, folder: Path) -> None:
        server = own_postgres(18)
        self.database = Database(server)
        self.database.execute("CREATE ROLE app SUPERUSER LOGIN")
        self.database.execute(_TABLE)
        self.alter("one")
        rules = server.data / "pg_hba.conf"
        rules.write_text(
            f"host all app 127.0.0.1/32 scram-sha-256\n{rules.read_text()}"
        )
        self.database.execute("SELECT pg_reload_conf()")
        self.file = folder / "password"
        self.write("one")
        dsn = make_conninfo(server.dsn(), user="app")
        self.walstream = runs(
            server.dsn(), source={"dsn": f"{dsn} password=${{file:{self.file}}}"}
        )

    def alter(self, password: str) -> None:
        """Have the server want another one."""
        self.database.execute(f"ALTER ROLE app PASSWORD '{password}'")

    def write(self, password: str) -> None:
        """Write what walstream reads, as whoever rotates secrets does."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(password)
        fresh.rename(self.file)

    def cut(self) -> None:
        """End its sessions: only who logs in anew is asked for a password."""
        gone = self.database.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE usename = 'app'"
        )
        assert gone


@pytest.mark.parametrize("order", ["server first", "file first"])
def test_a_password_that_was_rotated_is_read_anew(
    guarded: Guarded, reader: Reader, order: str
) -> None:
    walstream = guarded.walstream.start().streaming().streaming_said()
    guarded.database.execute("INSERT INTO t VALUES (1)")
    reader.count(1)
    if order == "file first":
        guarded.write("two")
        guarded.alter("two")
        guarded.cut()
    else:
        guarded.alter("two")
        guarded.cut()
        walstream.until("password authentication failed")
        walstream.until("starting it again")
        guarded.write("two")
    guarded.database.execute("INSERT INTO t VALUES (2)")
    reader.count(2)
    assert walstream.running
    assert walstream.terminate() == 0


def test_a_password_that_stays_wrong_ends_the_source_after_its_grace(
    guarded: Guarded,
) -> None:
    guarded.walstream.top = {"reload_grace": "2s"}
    walstream = guarded.walstream.start().streaming().streaming_said()
    guarded.alter("two")
    guarded.cut()
    walstream.ends_with(4, "password authentication failed", "starting it again")


def test_one_that_never_streamed_is_not_tried_for_long(guarded: Guarded) -> None:
    guarded.write("wrong")
    guarded.walstream.start().ends_with(4, "password authentication failed")
    assert not guarded.walstream.said("starting it again")


def test_without_an_instance_it_says_how_to_start_one(
    newest_database: Database, runs: Runs
) -> None:
    walstream = runs(newest_database.dsn)
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    done = reload(walstream)
    assert done.returncode == 2
    assert "no walstream runs with the state in" in done.stderr
    assert "walstream run -c" in done.stderr


def test_psycopg_is_asked_for_scram(guarded: Guarded) -> None:
    """The guard guards: without its password nobody comes in."""
    with pytest.raises(psycopg.OperationalError, match="no password supplied"):
        psycopg.connect(make_conninfo(guarded.database.dsn, user="app"))
