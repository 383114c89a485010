"""Skips in CI, tried with a run of pytest inside this one."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.project.skip import prefixes

ROOT = Path(__file__).parents[2]
CONFTEST = """
from pathlib import Path
from tests.support.project.skip import Watch

def pytest_configure(config):
    config.pluginmanager.register(Watch(Path(__file__).with_name("may_skip.txt")))
"""
SKIPPED = """
import pytest

def test_passed():
    pass

def test_skipped():
    pytest.skip("no reason")

@pytest.mark.xfail
def test_expected():
    assert False
"""


def test_skip_fails_the_run_in_ci_and_is_named(tmp_path: Path) -> None:
    code, output = _run(tmp_path, allowed="", ci="true")
    assert code == 1
    assert "fails the run in CI" in output
    assert "test_inner.py::test_skipped" in output
    assert "test_inner.py::test_expected" not in output


def test_named_skip_passes_in_ci(tmp_path: Path) -> None:
    code, _ = _run(tmp_path, allowed="test_inner.py::test_sk  # a reason\n", ci="1")
    assert code == 0


def test_skip_passes_outside_ci(tmp_path: Path) -> None:
    code, output = _run(tmp_path, allowed="", ci="")
    assert code == 0
    assert "fails the run" not in output


def test_comments_name_no_test() -> None:
    assert prefixes("# all of these\n\na::b  # why\nc::d\n") == ("a::b", "c::d")


def _run(folder: Path, *, allowed: str, ci: str) -> tuple[int, str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_inner.py").write_text(SKIPPED)
    (folder / "may_skip.txt").write_text(allowed)
    (folder / "pytest.ini").write_text("[pytest]\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout
