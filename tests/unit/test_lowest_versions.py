"""What walstream needs has bounds on both sides, and tests can be run on the lowest."""

import ast
import re
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support.project.lowest_versions import constraints, needed, project
from tests.support.project.own_coverage import ROOT


@pytest.mark.parametrize("need", needed(project()))
def test_what_is_needed_has_a_lowest_and_a_highest_version(need: str) -> None:
    assert re.fullmatch(r"[\w.-]+(\[\w+\])?>=[\d.]+,<\d+(\.\d+)?", need)


def test_each_is_pinned_to_its_lowest() -> None:
    wanted = ["psycopg==3.2.1", "jgo==3.0"]
    assert list(constraints(["psycopg[binary]>=3.2.1,<4", "jgo>=3.0,<4"])) == wanted
    with pytest.raises(ValueError, match="has no lower bound"):
        list(constraints(["orjson"]))


def test_what_is_needed_is_imported() -> None:
    """Else the packages bundle, and a host carries, what nobody runs."""
    found = packages_distributions()
    used = {
        _plain(name)
        for package in ("walstream", "consumer")
        for path in (ROOT / package).rglob("*.py")
        for top in _imports(path)
        for name in found.get(top, ())
    }
    needs = {_plain(re.split(r"[\[<>=]", one)[0]) for one in project()["dependencies"]}
    assert {"psycopg", "pyyaml"} <= needs  # also those whose module has another name
    assert needs <= used


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
