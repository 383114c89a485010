"""The files of a release: packaging/release.sh, on what was built for this machine."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
SCRIPT: Final = ROOT / "packaging" / "release.sh"
BILLS: Final = {
    "requirements": "walstream",
    "spark": "walstream-spark",
    "consumer": "walstream-consumer",
}

pytestmark = [pytest.mark.fault_long, pytest.mark.takes(300)]


def release(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *arguments],
        env={**os.environ, "OUT": str(out), "PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_a_release_is_repaired_listed_and_summed(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", tmp_path, ROOT],
        env={**os.environ, "HATCH_BUILD_HOOKS_ENABLE": "1"},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    (built,) = tmp_path.glob("*.whl")
    assert "-linux_" in built.name

    made = release(tmp_path)

    assert made.returncode == 0, made.stdout
    (wheel,) = tmp_path.glob("*.whl")
    assert re.search(r"-manylinux\w+\.manylinux_2_\d+_\w+\.whl$", wheel.name)
    for lock, name in BILLS.items():
        (bill,) = tmp_path.glob(f"{name}-[0-9]*.cdx.json")
        pinned = (ROOT / "packaging" / f"{lock}.lock").read_text("utf-8")
        wanted = set(re.findall(r"^([\w.-]+)==([^ ]+)", pinned, re.MULTILINE))
        parts = json.loads(bill.read_bytes())["components"]
        assert {(part["name"], part["version"]) for part in parts} == wanted
    sums = (tmp_path / "SHA256SUMS").read_text("utf-8")
    listed = {line.split("  ")[1] for line in sums.splitlines()}
    assert listed == {path.name for path in tmp_path.iterdir()} - {"SHA256SUMS"}
    check = ["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"]
    subprocess.run(check, cwd=tmp_path, check=True)
    again = release(tmp_path)  # after a package was added, say
    assert again.returncode == 0
    assert (tmp_path / "SHA256SUMS").read_text("utf-8") == sums


def test_nothing_built_is_no_release(tmp_path: Path) -> None:
    made = release(tmp_path)
    assert made.returncode == 2
    assert "make dist package" in made.stdout
    assert list(tmp_path.iterdir()) == []
