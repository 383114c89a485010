"""An installation of an earlier version is upgraded while it streams.

The rows written meanwhile arrive, all of them and in order: configuration, state and
topics go on. By pip here; `test_upgrade_packages.py` does it by deb and rpm.
"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.op_order import (
    OracleSlot,
    assert_rewind_and_continue,
    foreign,
    missing,
)
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.installed import run
from tests.support.programs.walstream import SOURCE, Walstream
from tests.support.project import earlier_version
from tests.support.project.own_coverage import ROOT

WHY: Final = earlier_version.absent()
pytestmark = [
    pytest.mark.fault_long,
    pytest.mark.takes(600),
    pytest.mark.same_on_15,
    pytest.mark.skipif(bool(WHY), reason=WHY),
]
OLD_WORKER: Final = "walstream.worker_main"  # a module that this version has elsewhere
ROWS_OF_BEFORE: Final = "INSERT INTO load SELECT n, n FROM generate_series(-999, 0) n"


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return earlier_version.sources(tmp_path_factory.mktemp("before") / "sources")


@pytest.fixture(scope="module")
def wheels(before: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Build that version's, and this one's, with a later number."""
    folder = tmp_path_factory.mktemp("wheels")
    now = folder / "now"
    run(folder, "git", "clone", "-q", "--shared", ROOT, now)
    # what is not committed yet is tried too
    changed = subprocess.run(
        ["git", "diff", "HEAD", "--binary"], cwd=ROOT, capture_output=True, check=True
    )
    if changed.stdout:
        apply = ["git", "apply", "--binary", "-"]
        subprocess.run(apply, cwd=now, input=changed.stdout, check=True)
    project = now / "pyproject.toml"
    later = re.sub(
        r'(?m)^version = ".*"$', 'version = "99.1"', project.read_text("utf-8")
    )
    project.write_text(later, "utf-8")
    found: list[Path] = []
    for name, root in (("old", before), ("new", now)):
        build = (sys.executable, "-m", "build", "--wheel", "--outdir", folder / name)
        run(folder, *build, root)
        found += (folder / name).iterdir()
    old, new = found
    return old, new


@pytest.fixture
def installed(wheels: tuple[Path, Path], tmp_path: Path) -> Path:
    """Install the earlier version; give the environment's commands."""
    run(tmp_path, sys.executable, "-m", "venv", tmp_path / "venv")
    commands = tmp_path / "venv" / "bin"
    pip(commands, wheels[0])
    return commands


def pip(commands: Path, *arguments: str | Path) -> None:
    quiet = ("--quiet", "--disable-pip-version-check")
    install = ("-m", "pip", "install", *quiet)
    run(commands, commands / "python", *install, *arguments)


@pytest.fixture
def walstream(database: Database, runs: Runs, installed: Path) -> Walstream:
    database.execute(f"{TABLE}; {ROWS_OF_BEFORE}")
    made: Any = {"source": {"backfill": "initial"}, "sink": {"topic_partitions": 4}}
    # of its own environment alone, whatever the tests' own has
    made |= {"program": installed / "walstream", "environment": {"PYTHONPATH": ""}}
    return runs(database.dsn, **made)


@pytest.mark.parametrize("worker", ["lives", "dies"])
def test_pip_upgrades_it_while_it_streams(
    database: Database,
    walstream: Walstream,
    wheels: tuple[Path, Path],
    reader: Reader,
    worker: str,
) -> None:
    program, commands = walstream.program, walstream.program.parent
    assert "99.1" not in run(commands, program, "--version")
    walstream.start().until("backfill ended", 120).streaming()
    assert walstream.processes(OLD_WORKER), "it is that version"
    oracle = OracleSlot(database)
    with Load(database.dsn, seed=5) as load:
        load.wait_for_more()
        pip(commands, "--upgrade", wheels[1])
        assert "99.1" in run(commands, program, "--version")
        if worker == "lives":  # it is the old one: it streams on, and drains
            seen = len(reader.read())
            reader.until(lambda records: len(records) > seen + 100)
        else:
            kill_worker(walstream)
            walstream.until_said("worker ended", 2)
        load.wait_for_more()
        code = walstream.terminate()
        assert worker == "dies" or code == 0, walstream.text
        load.wait_for_more()
        walstream.start().streaming()
        load.wait_for_more()
    expected = oracle.names()
    assert len(expected) > 100
    reader.until(lambda records: not missing(expected[-1:], records), 180)
    status = (program, "status", "-c", walstream.configuration)
    assert SOURCE in run(commands, *status)
    assert walstream.terminate() == 0, walstream.text
    assert not walstream.said("backfill begins")
    snapshot = [record for record in reader.read() if record.op.snapshot]
    streamed = [record for record in reader.records if not record.op.snapshot]
    assert sorted(int(one.new["id"]) for one in snapshot) == [*range(-999, 1)]
    assert missing(expected, streamed) == foreign(expected, streamed) == []
    repeats = assert_rewind_and_continue(streamed)
    assert worker == "dies" or repeats == 0
    # pip removes no library that is no longer needed: Spark stays
    run(commands, commands / "python", "-c", "import pyspark")


def kill_worker(walstream: Walstream) -> None:
    """Kill it; whatever the old supervisor starts instead is not what it was."""
    (worker,) = walstream.processes(OLD_WORKER)
    worker.kill()
    worker.wait(30)
