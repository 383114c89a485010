"""Strikes at call sites: some of each scenario, and that what judges them can fail."""

import errno
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.callsites import trace, trial
from tests.callsites.plan import Strike, sample, strikes
from tests.callsites.scenario import OwnServers, Scenario, own_group, staged
from tests.callsites.scenarios import SCENARIOS
from tests.callsites.service import Violation
from tests.callsites.shim import Action, Order, Tap
from tests.callsites.streams import FirstStart, Stream
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.fork import ForkServer

SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
_SAMPLE = 6
EVERY = [
    pytest.param(kind, version, id=f"{name}-{version}")
    for name, kind in SCENARIOS.items()
    for version in kind.versions
]
FEW = [
    Strike(
        "worker sendto replication CREATE_REPLICATION_SLOT"
        " @walstream/postgres/slot.py:create",
        *("first", "killed after"),
    ),
    Strike(
        "worker fdatasync state/app/data.mdb"
        " @walstream/sources/postgres/bootstrap.py:Beginning._create",
        *("first", "killed before"),
    ),
    Strike(
        "worker fdatasync state/app/data.mdb"
        " @walstream/pipeline/checkpoint.py:Checkpointer._write",
        *("first", "EIO"),
    ),
]


# what strikes found once, beside what unit tests know
FOUND = {
    "backfill": Strike(
        "driver sendto spark.sock"
        " @walstream/spark/driver/__main__.py:Service._run_chunks.<locals>.done",
        *("first", "EPIPE"),
    ),
    "detach": Strike(
        "worker unlink state/app/away/other/data.mdb"
        " @walstream/sources/postgres/detached/slot_copy.py:drop",
        *("first", "EIO"),
    ),
    "consumer": Strike("consumer write stderr", "first", "EIO"),
}


@dataclass(frozen=True)
class Shared:
    """The servers that all tests use."""

    server: PostgresServer
    kafka: KafkaServer
    forks: ForkServer | None = None

    def postgres(self, version: int) -> PostgresServer:
        assert version == self.server.version
        return self.server


@pytest.fixture(scope="module")
def servers() -> Iterator[OwnServers]:
    with OwnServers() as made:
        yield made


@pytest.mark.parametrize("strike", FEW, ids=lambda one: one.how)
def test_a_strike_at_a_first_start_needs_nobody(
    strike: Strike, postgres18: PostgresServer, kafka: KafkaServer
) -> None:
    order = strike.order(1, group=False)
    seen = trial.run(Shared(postgres18, kafka), FirstStart, 18, order)
    assert seen.struck
    assert not seen.violation, f"{seen.violation}: {seen.folder}"


@pytest.mark.fault_long
@pytest.mark.parametrize("name", FOUND)
def test_what_strikes_found_needs_nobody(name: str, servers: OwnServers) -> None:
    order = FOUND[name].order(1, group=False)
    seen = trial.run(servers, SCENARIOS[name], 18, order)
    assert seen.struck
    assert not seen.violation, f"{seen.violation}: {seen.folder}"


@pytest.mark.fault_long
@pytest.mark.takes(240)
@pytest.mark.parametrize(("kind", "version"), EVERY)
def test_some_strikes_of_each_scenario_need_nobody(
    kind: type[Scenario], version: int, servers: OwnServers
) -> None:
    print(f"seed {SEED}")  # noqa: T201 - to replay a failure
    counts = trial.run(servers, kind, version).counts
    found = {}
    for number, strike in enumerate(sample(strikes(counts, SEED), _SAMPLE, SEED)):
        order = strike.order(counts[strike.site], group=number % 2 == 0)
        seen = trial.run(servers, kind, version, order)
        if seen.violation:
            found[strike.name] = f"{seen.violation}: {seen.folder}"
    assert found == {}


@pytest.mark.fault_long
@pytest.mark.takes(120)
@pytest.mark.parametrize("kind", SCENARIOS.values(), ids=SCENARIOS)
def test_the_shim_sees_what_strace_sees(
    kind: type[Scenario], servers: OwnServers, tmp_path: Path
) -> None:
    if shutil.which("strace") is None:
        pytest.skip("no strace: apt-get install strace")
    report, script = tmp_path / "strace", tmp_path / "traced"
    tap = Tap(tmp_path / "tap", own_group())
    with staged(servers, 18, tmp_path / "run", tap) as scene:
        scenario = kind(scene)
        program = scenario.service.program
        script.write_text(trace.command(program.program, report), "utf-8")
        script.chmod(0o700)
        program.program = script
        tap.arm()  # what strace sees cannot begin later
        scenario.act()
        seen = trace.Trace(scene.folder, *scene.ports)
        with report.open() as lines:
            seen.read(lines)
    listed: Counter[str] = Counter()
    for site, count in tap.counts().items():
        if name := trace.common(site):
            listed[name] += count
    assert dict(seen.counts) == dict(listed)


@pytest.mark.fault_long
def test_what_is_missing_or_ahead_is_a_violation(
    servers: OwnServers, tmp_path: Path
) -> None:
    tap = Tap(tmp_path / "tap", own_group())
    with staged(servers, 18, tmp_path / "run", tap) as scene:
        stream = Stream(scene)
        stream.act()
        stream.settle()
        stream.never_ahead()
        with closing(Reader(scene.bootstrap, "another prefix")) as empty:
            whole, stream.reader = stream.reader, empty
            with pytest.raises(Violation, match="the position is ahead of"):
                stream.never_ahead()
            stream.reader = whole
        stream.database.execute("ALTER TABLE load DISABLE TRIGGER ALL")
        stream.compare(whole)
        stream.database.execute("DROP PUBLICATION walstream, walstream_insert")
        stream.database.execute("DELETE FROM load WHERE id = 100")
        with pytest.raises(Violation, match="by position"):
            stream.compare(whole)


WRITER = """
import os, sys
file = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
for number in range(4):
    try:
        os.write(file, b"%d" % number)
    except OSError as error:
        os.write(file, error.strerror.encode())
os.fsync(file)
"""


@dataclass(frozen=True)
class Struck:
    """What came of a small program that writes 0123 and calls fsync."""

    code: int
    written: str
    done: bool
    calls: list[str]


def struck(folder: Path, action: Action, occurrence: int, error: int = 0) -> Struck:
    site = "supervisor write file"
    tap = Tap(folder / "tap", own_group(), Order(site, occurrence, action, error))
    program = folder / "walstream"
    program.write_text(WRITER, "utf-8")
    tap.arm()
    run = folder / "run"
    run.mkdir()
    done = subprocess.run(
        [sys.executable, program, "run", run / "file"],
        env={**os.environ, **tap.environment(run, 1, 2)},
        check=False,
    )
    assert not tap.done or not psutil.pid_exists(tap.pid)
    calls = [name for _, name in tap.calls()]
    return Struck(done.returncode, (run / "file").read_text(), tap.done, calls)


@pytest.mark.own_start
def test_a_strike_is_exact(tmp_path: Path) -> None:
    def at(name: str) -> Path:
        (tmp_path / name).mkdir()
        return tmp_path / name

    before = struck(at("before"), Action.KILL_BEFORE, 3)
    assert (before.code, before.written, before.done) == (-9, "01", True)
    after = struck(at("after"), Action.KILL_AFTER, 3)
    assert (after.code, after.written, after.done) == (-9, "012", True)
    failed = struck(at("failed"), Action.FAIL, 2, errno.ENOSPC)
    assert (failed.code, failed.written) == (0, "0No space left on device23")
    none = struck(at("none"), Action.KILL_BEFORE, 9)
    assert (none.code, none.written, none.done) == (0, "0123", False)
    writes = ["supervisor write file"] * 4
    assert none.calls == ["supervisor creat file", *writes, "supervisor fsync file"]
