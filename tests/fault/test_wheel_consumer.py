"""The wheel walstream-consumer, alone in an empty environment and beside walstream."""

import re
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.programs.installed import run
from tests.support.project.consumer_distribution import SCRIPT
from tests.support.project.own_coverage import ROOT

pytestmark = [pytest.mark.fault_long, pytest.mark.takes(300)]
MOST_MB: Final = 60
# they ask stand-ins for servers, which walstream alone has
OF_WALSTREAM: Final = {"group/test_fetcher.py"}
# its names are a check of walstream's own pyproject.toml
OF_SOURCES: Final = {"test_libraries.py"}
SUPPORT: Final = (
    *("deadline.py", "loads/op.py", "loads/op_record.py"),
    *("servers/mock_kafka.py", "servers/slow_link.py"),
)
PROBE: Final = """
import consumer, walstream_consumer, consumer.tail, walstream_consumer.tail
print(consumer is walstream_consumer, consumer.tail is walstream_consumer.tail,
      consumer.Op.__module__, walstream_consumer.Op.__module__)
"""
TYPED: Final = """
from {first} import Op
from {second} import BasicConsumer, Kind

def handle(op: Op) -> None:
    number: int = op.table

BasicConsumer(handle, group="g", topics="t", kafka={{}})
"""
ALONE: Final = "True True walstream_consumer.op walstream_consumer.op"
IN_WALSTREAM: Final = "True True consumer.op consumer.op"
BESIDE: Final = "False False consumer.op walstream_consumer.op"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build both, and look at the one that is new."""
    folder = tmp_path_factory.mktemp("wheels")
    out = folder / "dist"
    run(folder, sys.executable, SCRIPT, folder / "project")
    # by way of the sdist: what that lacks, the wheel cannot have
    build = (sys.executable, "-m", "build", "--outdir", out)
    run(folder, *build, folder / "project")
    run(folder, sys.executable, "-m", "twine", "check", "--strict", *out.iterdir())
    run(folder, *build, "--wheel", ROOT)
    return {path.name.split("-")[0]: path for path in out.glob("*.whl")}


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """Make an empty environment."""
    run(tmp_path, sys.executable, "-m", "venv", tmp_path / "venv")
    return tmp_path / "venv" / "bin" / "python"


def pip(python: Path, *arguments: str | Path) -> None:
    quiet = ("--quiet", "--disable-pip-version-check")
    run(python.parent, python, "-m", "pip", *quiet, *arguments)


def size_mb(python: Path) -> float:
    """Measure what is installed, without what every environment has."""
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    own = re.compile(r"pip|setuptools|pkg_resources|_distutils_hack")
    files = (path for path in site.rglob("*") if path.is_file())
    sizes = [
        path.stat().st_size
        for path in files
        if not own.match(path.relative_to(site).parts[0])
    ]
    return sum(sizes) / 1e6


def test_it_is_small_and_passes_the_librarys_own_tests(
    python: Path, wheels: dict[str, Path], tmp_path: Path
) -> None:
    pip(python, "install", wheels["walstream_consumer"])
    assert size_mb(python) < MOST_MB
    pip(python, "install", "lmdb", "pytest", "hypothesis")
    for source in sorted((ROOT / "tests/unit/consumer").rglob("*.py")):
        name = str(source.relative_to(ROOT / "tests/unit/consumer"))
        if name not in OF_WALSTREAM | OF_SOURCES:
            copy(source, tmp_path)
    for name in SUPPORT:
        copy(ROOT / "tests" / "support" / name, tmp_path)
    told = run(tmp_path, python, "-m", "pytest", "-q", "--import-mode=importlib", ".")
    passed = re.search(r"(\d+) passed", told)
    assert passed is not None, told
    assert int(passed[1]) > 300
    assert "skipped" not in told


def copy(source: Path, folder: Path) -> None:
    """Copy a test; what it takes from walstream is the library's own copy there."""
    target = folder / source.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    text = source.read_text("utf-8")
    own = r"\1from walstream_consumer._walstream."
    target.write_text(re.sub(r"(?m)^(\s*)from walstream\.", own, text), "utf-8")


def test_it_stays_whole_whatever_becomes_of_walstream(
    python: Path, wheels: dict[str, Path], tmp_path: Path
) -> None:
    """Installed together in either order, and either removed."""
    consumer, walstream = wheels["walstream_consumer"], wheels["walstream"]

    def found() -> str:
        for name in ("consumer", "walstream_consumer"):
            assert "Exit codes" in run(tmp_path, python, "-m", name, "--help")
            other = {"consumer", "walstream_consumer"} - {name}
            check_types(python, tmp_path, name, *other)
        return run(tmp_path, python, "-c", PROBE).strip()

    pip(python, "install", consumer)
    assert found() == ALONE
    pip(python, "install", walstream)
    assert found() == BESIDE
    pip(python, "uninstall", "-y", "walstream")
    assert found() == ALONE
    pip(python, "install", walstream)
    pip(python, "uninstall", "-y", "walstream-consumer")
    assert found() == IN_WALSTREAM
    pip(python, "install", consumer)
    assert found() == BESIDE
    pip(python, "uninstall", "-y", "walstream", "walstream-consumer")
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    assert not list(site.glob("*consumer*"))
    shutil.rmtree(python.parents[1])


def check_types(python: Path, folder: Path, first: str, second: str) -> None:
    """See that a type checker knows both names, and finds the error there is."""
    program = folder / "typed.py"
    program.write_text(TYPED.format(first=first, second=second), "utf-8")
    mypy = (sys.executable, "-m", "mypy", "--strict", "--python-executable", python)
    told = run(folder, *mypy, "--cache-dir=/dev/null", program, fails=True)
    assert (
        'error: Incompatible types in assignment (expression has type "Table"' in told
    )
    assert "Found 1 error in 1 file" in told
