"""Which form runs, and that sources can be taken before compiled twins."""

import os
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from walstream.telemetry import build

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a copy whose pipeline has a twin, which is no extension at all."""
    folder = tmp_path_factory.mktemp("build")
    left_out = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(ROOT / "walstream", folder / "walstream", ignore=left_out)
    twin = folder / "walstream" / "pipeline" / f"loop{EXTENSION_SUFFIXES[0]}"
    twin.write_bytes(b"no extension")
    return folder


def run(tree: Path, pure: str, code: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(tree), "WALSTREAM_PURE": pure}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )


def test_a_tree_without_twins_is_pure() -> None:
    assert build.form() == "pure"


@pytest.mark.parametrize("pure", ["", "0"])
def test_a_compiled_twin_is_preferred(tree: Path, pure: str) -> None:
    assert run(tree, pure, "import walstream.pipeline.loop").returncode != 0
    said = run(tree, pure, "from walstream.telemetry import build; print(build.form())")
    assert said.stdout == "compiled\n"


def test_sources_are_taken_where_that_is_wanted(tree: Path) -> None:
    code = "import walstream.pipeline.loop as p"
    code += "; from walstream.telemetry.build import form; print(p.__file__, form())"
    said = run(tree, "1", code)
    assert said.stdout == f"{tree / 'walstream' / 'pipeline' / 'loop.py'} pure\n"
