"""Each call of LMDB fails once: a write is lost, and never the state."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.callsites.scenario import own_group
from tests.callsites.shim import Action, Order, Tap

pytestmark = [pytest.mark.fault_long, pytest.mark.own_start]
WRITES: Final = 4
# writes documents, reads them back, and opens the folder anew
WRITER: Final = f"""
import sys
from pathlib import Path
from walstream.errors import Transient
from walstream.state.lmdb_environment import LmdbEnvironment

lost = 0


def opened():
    global lost
    environment = LmdbEnvironment(Path(sys.argv[2]))
    try:
        environment.open(wait_s=0.0)
    except Transient:
        lost += 1
        environment.close()
        environment.open(wait_s=0.0)
    return environment


environment = opened()
for number in range({WRITES}):
    told = None
    while told is None:
        try:
            environment.write({{"last": b"%d" % number, f"one/{{number}}": bytes(100)}})
        except Transient:
            lost += 1
            environment.names("")  # reads go on, of this write or of the one before
        else:
            told = environment.get("last")
    assert told == b"%d" % number
environment.close()
assert len(opened().names("one/")) == {WRITES}
print(lost)
"""


def run(folder: Path, order: Order | None) -> tuple[str, Tap]:
    """Run the writer, struck once; give what it printed."""
    tap = Tap(folder / "tap", own_group(), order)
    program, state = folder / "walstream", folder / "run"
    program.write_text(WRITER, "utf-8")
    state.mkdir(parents=True)
    tap.arm()
    done = subprocess.run(
        [sys.executable, program, "run", state / "app"],
        env={**os.environ, **tap.environment(state, 1, 2)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), tap


@pytest.mark.parametrize("called", ["pwrite64", "writev", "fdatasync", "creat"])
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_a_call_that_fails_costs_one_write(
    called: str, error: int, tmp_path: Path
) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc: apt-get install gcc libc6-dev")
    said, seen = run(tmp_path / "none", None)
    assert said == "0"
    calls = [
        (site, number)
        for site, count in seen.counts().items()
        if f" {called} " in site and "data.mdb" in site
        for number in range(1, count + 1)
    ]
    assert calls
    for at, (site, number) in enumerate(calls):
        order = Order(site, number, Action.FAIL, error)
        said, tap = run(tmp_path / str(at), order)
        assert tap.done, (site, number)
        assert said == "1", (site, number, said)
