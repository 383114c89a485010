"""A seeded part of the long tests, tried with runs of pytest inside this one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project.sample import Sample

ROOT = Path(__file__).parents[2]
NAMES = [f"tests/test_{module}.py::test[{n}]" for module in "abcdef" for n in range(20)]
_TESTS = """
import pytest, time
from tests.support.project import sample

class Clock:
    ahead = 0.0
    def monotonic(self):
        return time.monotonic() + self.ahead

sample.time = Clock()

@pytest.mark.takes({takes})
@pytest.mark.parametrize("n", range(12))
def test_one(n):
    sample.time.ahead += {lasts}
    assert n != {fails}

@pytest.mark.takes(1800)
def test_long():
    assert False

def test_undeclared():
    assert False
"""


def test_an_order_is_the_seeds_alone() -> None:
    ordered = Sample(480, 7).ordered(NAMES)
    assert sorted(ordered) == sorted(NAMES)
    assert Sample(10, 7).ordered(reversed(NAMES)) == ordered
    assert Sample(480, 8).ordered(NAMES) != ordered


def test_a_test_that_is_added_moves_no_other() -> None:
    ordered = Sample(480, 7).ordered(NAMES)
    added = Sample(480, 7).ordered([*NAMES, "tests/test_g.py::test_new"])
    assert [one for one in added if one in NAMES] == ordered


def test_each_module_has_a_few_before_any_has_more() -> None:
    modules = [one.partition("::")[0] for one in Sample(480, 7).ordered(NAMES)]
    for begin in range(0, 18, 3):  # one after the other, so that set-ups are shared
        assert len(set(modules[begin : begin + 3])) == 1
    assert len(set(modules[:18])) == 6


def test_what_takes_much_of_the_time_is_in_no_sample() -> None:
    assert Sample(480, 7).may_take(120)
    assert not Sample(480, 7).may_take(121)


def test_nothing_begins_that_may_end_too_late() -> None:
    assert Sample(480, 7).may_begin(420, 60)
    assert not Sample(480, 7).may_begin(421, 60)


def test_a_run_tells_what_it_left_out_and_how_to_repeat_it(tmp_path: Path) -> None:
    ended = _run(tmp_path, "--sample=100", takes=20, lasts=0, fails=-1)
    assert ended.returncode == 0, ended.stdout
    assert "12 passed, 2 deselected" in ended.stdout
    assert "12 tests within" in ended.stdout
    assert "2 are longer" in ended.stdout
    assert "make fault SAMPLE=100 SEED=7" in ended.stdout


def test_what_has_no_time_is_no_failure_and_no_skip(tmp_path: Path) -> None:
    ended = _run(tmp_path, "--sample=1000", takes=200, lasts=300, fails=-1)
    assert ended.returncode == 0, ended.stdout
    assert "3 passed, 1 deselected in" in ended.stdout  # 900 s are over
    assert "no time for 10" in ended.stdout


def test_a_failure_is_one_of_the_run(tmp_path: Path) -> None:
    ended = _run(tmp_path, "--sample=100", takes=20, lasts=0, fails=3)
    assert ended.returncode == pytest.ExitCode.TESTS_FAILED
    assert "1 failed, 11 passed" in ended.stdout


def test_a_time_that_no_test_fits_into_is_no_success(tmp_path: Path) -> None:
    ended = _run(tmp_path, "--sample=10", takes=20, lasts=0, fails=-1)
    assert ended.returncode == pytest.ExitCode.NO_TESTS_COLLECTED


def test_what_is_long_begins_first_where_several_run(tmp_path: Path) -> None:
    (tmp_path / "test_before.py").write_text("def test_short(): pass")
    ended = _run(tmp_path, "-n1", "-v", takes=20, lasts=0, fails=-1)
    ran = re.findall(r"(?:PASSED|FAILED) .*::(test_[a-z]+)", ended.stdout)
    assert ran[:2] == ["test_long", "test_one"]
    assert set(ran[13:15]) == {"test_short", "test_undeclared"}


def _run(
    folder: Path, *options: str, **what: float
) -> subprocess.CompletedProcess[str]:
    (folder / "test_inner.py").write_text(_TESTS.format(**what))
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.support.project.sample"),
            *("-p", "no:cacheprovider", "--strict-markers", "--randomly-seed=7"),
            *options,
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
