"""The workflows of .github: what they run exists, and each action is pinned."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[2]
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NAMES: Final = [path.stem for path in WORKFLOWS]
NEWEST: Final = 14  # of Python 3, that wheels are built for


def load(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return loaded


def steps(path: Path) -> Iterator[dict[str, Any]]:
    for job in load(path)["jobs"].values():
        yield from job["steps"]


def targets() -> set[str]:
    rules = (ROOT / "Makefile").read_text("utf-8")
    return set(re.findall(r"^([a-z-]+):", rules, re.MULTILINE))


def test_the_four_that_a_project_needs_are_there() -> None:
    assert NAMES == ["bench", "ci", "nightly", "release"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=NAMES)
def test_an_action_is_pinned_by_its_commit(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    used = [line.split("uses:")[1].strip() for line in lines if "uses:" in line]
    assert used
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [one for one in used if not pinned.fullmatch(one)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=NAMES)
def test_a_workflow_may_only_read_unless_a_job_says_more(path: Path) -> None:
    assert load(path)["permissions"] == {"contents": "read"}
    for step in steps(path):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("path", WORKFLOWS, ids=NAMES)
def test_what_a_workflow_runs_exists(path: Path) -> None:
    found = 0
    for step in steps(path):
        run = step.get("run", "")
        for target in re.findall(
            r"^(?:make|bash \.ci/run) ([a-z-]+)", run, re.MULTILINE
        ):
            assert target in targets(), target
            found += 1
        for script in re.findall(r"(?:packaging/|\.ci/)\w[\w.]*", run):
            assert (ROOT / script).is_file(), script
            found += 1
    assert found


def test_ci_runs_all_and_a_run_with_targets_runs_them_alone() -> None:
    (run,) = [
        one["run"]
        for one in steps(WORKFLOWS[NAMES.index("ci")])
        if "ci/" in one.get("run", "")
    ]
    assert run == "bash .ci/run"


def test_the_shards_of_the_long_tests_are_all_of_them() -> None:
    nightly = load(WORKFLOWS[NAMES.index("nightly")])
    shards = nightly["jobs"]["fault"]["strategy"]["matrix"]["shard"]
    assert shards == [f"{n}/{len(shards)}" for n in range(1, len(shards) + 1)]


def test_wheels_are_built_for_each_python_from_the_oldest_supported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    oldest = re.fullmatch(r">=3\.(\d+)", project["project"]["requires-python"])
    assert oldest is not None
    supported = range(int(oldest[1]), NEWEST + 1)
    wheels = project["tool"]["cibuildwheel"]["build"]
    assert wheels == [f"cp3{minor}-*" for minor in supported]
