"""A check beside the tests fails their run, is shown, and may end it early."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project.own_coverage import ROOT

_CONFTEST = 'pytest_plugins = ["tests.support.project.check_beside"]\n'
_TESTS = """
import time
import pytest

@pytest.mark.parametrize("number", range(200))
def test_that_passes(number):
    time.sleep(0.1)
"""
_ONE = "def test_that_passes(): pass\n"


def _run(folder: Path, tests: str, *flags: str) -> tuple[int, str]:
    (folder / "conftest.py").write_text(_CONFTEST)
    (folder / "test_inner.py").write_text(tests)
    (folder / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-p", "no:randomly", *flags),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("flags", [[], ["-n", "1"]], ids=["alone", "on-a-worker"])
@pytest.mark.parametrize("ends", [0, 3])
def test_it_is_waited_for_and_decides(
    tmp_path: Path, flags: list[str], ends: int
) -> None:
    check = f"sh -c 'sleep 2; echo what it found; exit {ends}'"
    found, text = _run(tmp_path, _ONE, *flags, "--beside", check)
    assert bool(found) is bool(ends), text
    assert "1 passed" in text
    assert "what it found" in text
    assert ("failed: sh" in text) is bool(ends)


def test_once_it_has_failed_no_test_is_started(tmp_path: Path) -> None:
    found, text = _run(tmp_path, _TESTS, "-n", "1", "--beside", "false")
    assert found == pytest.ExitCode.INTERRUPTED
    assert "failed: false" in text
    assert "200 passed" not in text
