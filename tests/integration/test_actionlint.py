"""GitHub's own syntax, expressions and shells: actionlint reads the workflows."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
GO: Final = shutil.which("go", path=f"{os.environ['PATH']}:/usr/local/go/bin")
ACTIONLINT: Final = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"

pytestmark = pytest.mark.skipif(not GO, reason="actionlint is built by Go")


def lint(*paths: Path) -> subprocess.CompletedProcess[str]:
    assert GO is not None
    return subprocess.run(
        [GO, "run", ACTIONLINT, "-no-color", *paths],
        cwd=ROOT,
        env={**os.environ, "GOFLAGS": "-mod=mod"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_actionlint_finds_nothing_in_the_workflows() -> None:
    ended = lint(*(ROOT / ".github" / "workflows").glob("*.yml"))
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stdout + ended.stderr


def test_actionlint_finds_what_is_wrong(tmp_path: Path) -> None:
    release = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    wrong = tmp_path / "release.yml"
    wrong.write_text(release.replace("matrix.system", "matrix.systm"), "utf-8")
    ended = lint(wrong)
    assert ended.returncode == 1
    assert 'property "systm" is not defined' in ended.stdout
