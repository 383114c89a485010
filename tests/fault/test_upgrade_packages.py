"""deb and rpm of an earlier version are upgraded while their stream runs.

The rows written meanwhile arrive, all of them and in order; the old configuration file
and the old state are read. `test_upgrade.py` does it by pip.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Final

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.packages import CONFIGURATION, STATE, document, walstream_of
from tests.support.fixtures.postgres import PostgresServer, temporary_database
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.op_order import (
    OracleSlot,
    assert_rewind_and_continue,
    foreign,
    missing,
)
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.walstream import SOURCE, toml
from tests.support.project import earlier_version
from tests.support.servers.debian import System, build, debian, lacking, lent

WHY: Final = earlier_version.absent() or lacking(
    *("debootstrap", "dpkg-deb", "rpm", "unshare", "setpriv", "go", "envsubst")
)
pytestmark = [
    pytest.mark.fault_long,
    pytest.mark.takes(900),
    pytest.mark.skipif(bool(WHY), reason=WHY),
]
NAMES: Final = {"deb": "walstream_", "rpm": "walstream-0"}
SPARK: Final = {"deb": "walstream-spark_", "rpm": "walstream-spark-0"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Build the packages of this version, a release later, and of the earlier one."""
    folder = tmp_path_factory.mktemp("packages")
    new = build(folder / "new", "deb", "rpm", release=2)
    root = lent(earlier_version.sources(folder / "sources"))
    old = build(folder / "old", "deb", "rpm", root=root)
    return {"old": old, "new": new}


def package(made: list[Path], name: str) -> Path:
    (found,) = [path for path in made if path.name.startswith(name)]
    return found


def install(
    system: System, *packages: Path, nodeps: bool = True
) -> "subprocess.CompletedProcess[str]":
    """Install or upgrade, in one command; the system lacks what they depend on."""
    if packages[0].suffix == ".rpm":
        root = ["--root", str(system.folder), "--dbpath", "/var/lib/rpm"]
        options = ["--nosignature", *(["--nodeps"] if nodeps else [])]
        command = ["rpm", *root, *options, "-U", *map(str, packages)]
        return subprocess.run(command, capture_output=True, text=True, check=False)
    inside = []
    for path in packages:
        shutil.copyfile(path, system.folder / "root" / path.name)
        inside.append(f"/root/{path.name}")
    # Java alone is missing; a changed file is kept, as unattended upgrades do
    ignore = "--ignore-depends=java17-runtime-headless,openjdk-17-jre-headless"
    return system.run("dpkg", ignore, "--force-confold", "-i", *inside)


@contextmanager
def running(system: System, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run it as the unit does; its end is the test's business."""
    command = system.command("/usr/bin/walstream", "run", sandboxed=True)
    with log.open("wb") as file:
        process = subprocess.Popen(command, env={**os.environ}, stderr=file)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def drain(process: "subprocess.Popen[bytes]", log: Path) -> None:
    walstream_of(process.pid).send_signal(signal.SIGTERM)
    assert process.wait(60) == 0, log.read_text("utf-8")


@pytest.mark.parametrize("kind", ["deb", "rpm"])
def test_packages_are_upgraded_while_their_stream_runs(
    made: dict[str, list[Path]],
    tmp_path: Path,
    postgres18: PostgresServer,
    kafka: KafkaServer,
    kind: str,
) -> None:
    old, new = (package(made[age], NAMES[kind]) for age in ("old", "new"))
    system = debian(tmp_path / "debian")
    done = install(system, old, package(made["old"], SPARK[kind]))
    assert done.returncode == 0, done.stdout + done.stderr
    prefix = f"test_{token_hex(6)}."
    logs = tmp_path / "first.log", tmp_path / "second.log"
    with (
        temporary_database(postgres18) as database,
        Reader(kafka.bootstrap, prefix) as reader,
    ):
        database.execute(TABLE)
        written = toml(document(database.dsn, kafka.bootstrap, prefix))
        system.path(CONFIGURATION).write_text(written, "utf-8")
        active = (
            "SELECT FROM pg_replication_slots WHERE slot_name = 'packaged' AND active"
        )
        with running(system, logs[0]) as process:
            wait_until(lambda: database.fetch(active), 60, "it streams")
            oracle = OracleSlot(database, "packaged")
            with Load(database.dsn, seed=6) as load:
                load.wait_for_more()
                if kind == "rpm":  # dpkg leaves it to apt, which removes the other
                    alone = install(system, new, nodeps=False)
                    assert "is needed by (installed) walstream-spark" in alone.stderr
                done = install(system, new, package(made["new"], SPARK[kind]))
                assert done.returncode == 0, done.stdout + done.stderr
                seen = len(reader.read())  # of the old process, which streams on
                reader.until(lambda records: len(records) > seen + 100)
                drain(process, logs[0])
                load.wait_for_more()
        expected = oracle.names()
        with running(system, logs[1]) as process:
            reader.until(lambda records: not missing(expected[-1:], records))
            told = system.run("walstream", "status")
            assert SOURCE in told.stdout, told.stderr
            drain(process, logs[1])
        records = reader.read()
    assert len(expected) > 100
    assert missing(expected, records) == foreign(expected, records) == []
    assert assert_rewind_and_continue(records) == 0
    assert system.path(CONFIGURATION).read_text("utf-8") == written
    assert system.facts(STATE)[STATE] == "drwx------ walstream:walstream"
    shutil.rmtree(system.folder)
