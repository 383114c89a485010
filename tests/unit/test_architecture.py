"""docs/architecture.md names the packages that are there, and functions that exist."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.project.own_coverage import ROOT
from tests.support.project.picture import LOOSE, layers

_TEXT = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def section(title: str) -> str:
    """Give what stands under a heading of the page."""
    found = re.search(rf"(?ms)^## {re.escape(title)}$(.*?)(?=^## |\Z)", _TEXT)
    assert found is not None, title
    return found[1]


def functions(path: Path) -> set[str]:
    """Name all functions and methods of a module."""
    tree = ast.parse(path.read_text("utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


_STEPS = re.findall(
    r"(?m)^\| \d+ \| (.+?) \| (.+?) \| .+ \|$", section("The way of one op")
)


def test_every_package_has_its_sentence_in_the_order_of_the_layers() -> None:
    rows = re.findall(r"(?m)^\| `(\w+)` \| \S", section("Packages"))
    assert rows == [name for row in layers() for name in row if name != LOOSE]


def test_every_loose_module_is_named() -> None:
    loose = {path.name for path in (ROOT / "walstream").glob("[a-z]*.py")}
    assert set(re.findall(r"`walstream/(\w+\.py)`", section("Packages"))) == loose


def test_the_way_of_an_op_has_steps() -> None:
    assert len(_STEPS) > 20


@pytest.mark.parametrize(("files", "names"), _STEPS)
def test_a_step_names_functions_of_its_files(files: str, names: str) -> None:
    for file in re.findall(r"`(.+?)`", files):
        assert set(re.findall(r"`(\w+)`", names)) <= functions(ROOT / file), file


def test_every_thread_stands_in_a_file_that_starts_it() -> None:
    found = 0
    for row in re.findall(r"(?m)^\|(.+)\|$", section("Threads")):
        _, thread, _, where = row.split("|")
        files = [ROOT / file for file in re.findall(r"`(.+?)`", where)]
        for name in re.findall(r"`([\w-]+)", thread):
            found += 1
            quoted = f'"{name.partition("-N")[0]}'
            assert any(quoted in file.read_text("utf-8") for file in files), name
    assert found > 10
