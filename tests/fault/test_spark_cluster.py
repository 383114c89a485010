"""A standalone cluster, of a master and two workers: `master` alone is another one.

Tasks run where no lock and no parent reaches them: each chunk is a Kafka transaction,
and a next start fences those that the last one left. The cluster asks who speaks, and
encrypts, as walstream wants it off its own machine.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pyspark
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.backfill import agree, filled, held, load, settled
from tests.support.programs.walstream import Walstream

pytestmark = [pytest.mark.fault, pytest.mark.fault_long, pytest.mark.takes(120)]
_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_DEPLOY = "org.apache.spark.deploy"
_CONF = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "of-the-cluster-of-a-test",
    "spark.network.crypto.enabled": "true",
}


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _start(folder: Path, name: str, *words: str) -> "subprocess.Popen[bytes]":
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [_CLASS, *words],
            stdout=log,
            stderr=log,
            cwd=folder,
            env={**os.environ, "PYSPARK_PYTHON": sys.executable},
            start_new_session=True,
        )


def _end(process: "subprocess.Popen[bytes]") -> None:
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    for member in family:
        if member.is_running():
            member.kill()


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a cluster of two cores; give its URL."""
    folder = tmp_path_factory.mktemp("cluster")
    port = _free_port()
    url = f"spark://127.0.0.1:{port}"
    conf = folder / "spark.conf"
    conf.write_text("".join(f"{key} {value}\n" for key, value in _CONF.items()))
    here = ("--host", "127.0.0.1", "--webui-port", "0", "--properties-file", str(conf))
    with ExitStack() as stack:
        words = (f"{_DEPLOY}.master.Master", "--port", str(port), *here)
        stack.callback(_end, _start(folder, "master", *words))
        size = ("--cores", "1", "--memory", "1200m")
        for name in ("one", "two"):
            work = ("--work-dir", str(folder / name))
            worker = (f"{_DEPLOY}.worker.Worker", *size, *here, *work, url)
            stack.callback(_end, _start(folder, name, *worker))
        log = folder / "master.log"
        wait_until(
            lambda: log.read_text().count("Registering worker") == 2,
            60,
            "both workers are there",
        )
        yield url


@pytest.fixture
def walstream(database: Database, runs: Runs, master: str) -> Walstream:
    made = filled(database, runs)
    made.top = {"spark": {"master": master, "min_size": "0", "conf": _CONF}}
    return made


def test_a_cluster_without_them_is_refused(walstream: Walstream) -> None:
    master = walstream.top["spark"]["master"]
    walstream.top = {"spark": {"master": master, "min_size": "0"}}
    walstream.start().ends_with(2, "spark.master: leads off", "spark.authenticate")


@pytest.mark.same_on_15
def test_rows_of_before_and_changes_of_meanwhile_are_the_table(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    with load(database, seed=1) as writing:
        walstream.start().until("backfill ended", 120).streaming()
        writing.wait_for_more()
    agree(database, settled(database, walstream, reader))


def test_killed_amid_rows_it_ends_at_the_table(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    # so many chunks that both executors have more than one: a reader sees whole ones
    database.execute(
        "INSERT INTO load SELECT -100000 - i, i, repeat(md5(i::text), 60)"
        " FROM generate_series(1, 40000) AS i"
    )
    with load(database, seed=2) as writing:
        walstream.start()
        with held(database, "load"):
            reader.until(lambda records: records, 90)
            walstream.kill()
        writing.wait_for_more()
        walstream.start().until("backfill ended", 120).streaming()
        writing.wait_for_more()
    agree(database, settled(database, walstream, reader))
