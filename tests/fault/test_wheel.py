"""The wheel, alone in an empty environment, holds all that the demo needs: no Spark."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fixtures.server_origin import needs_own_servers
from tests.support.programs.installed import run
from tests.support.project.own_coverage import ROOT

pytestmark = [pytest.mark.fault_long, pytest.mark.takes(600)]
_DEMO_S = 10


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a temporary folder that the account of the servers may enter too."""
    needs_own_servers()
    made = Path(tempfile.mkdtemp(prefix="walstream-test-wheel-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.mark.parametrize(("compiled", "form"), [("", "pure"), ("1", "compiled")])
def test_the_wheel_plays_the_demo_in_an_empty_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch, compiled: str, form: str
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setenv("HATCH_BUILD_HOOKS_ENABLE", compiled)
    if not compiled:
        monkeypatch.delenv("HATCH_BUILD_HOOKS_ENABLE")
    # by way of the sdist: what that lacks, the wheel cannot have
    run(folder, sys.executable, "-m", "build", ROOT, "--outdir", folder / "dist")
    made = sorted((folder / "dist").iterdir())
    assert [one.suffix for one in made] == [".whl", ".gz"]
    run(folder, sys.executable, "-m", "twine", "check", "--strict", *made)

    run(folder, sys.executable, "-m", "venv", folder / "venv")
    python = folder / "venv" / "bin" / "python"
    run(folder, python, "-m", "pip", "install", "--quiet", f"{made[0]}[demo]")
    installed = run(folder, python, "-m", "pip", "list")
    assert not {"pyspark", "py4j"} & {
        line.split()[0] for line in installed.split("\n") if line
    }
    run(folder, python, "-c", "import walstream_consumer.group.fetcher")
    walstream = folder / "venv" / "bin" / "walstream"
    assert run(folder, walstream, "--version").strip().endswith(f"({form})")
    if compiled:
        run(folder, python, "-c", "from walstream.kafka import librdkafka")
    shown = run(folder, walstream, "demo", "--seconds", str(_DEMO_S), tmp=str(folder))
    assert "Nothing is missing." in shown
