"""The museum's mutants fit the source, and its checkers see what they are for."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.museum import __main__ as museum
from tests.museum import trial
from tests.museum.journal import Journal
from tests.museum.mutant import Mutant, NoSuchText, mutants
from tests.museum.tree import ROOT, Tree
from tests.mutation.__main__ import MeasuredModule
from tests.mutation.modules import MODULES
from tests.mutation.operators import changes
from tests.mutation.preload import Preload
from tests.mutation.survivors import explained

MUTANTS = list(mutants())
TEST = "from m import less\n\ndef test_it() -> None:\n    assert less(1, 2)\n"


@pytest.mark.parametrize("mutant", MUTANTS, ids=[one.name for one in MUTANTS])
def test_a_mutant_fits_the_source(mutant: Mutant) -> None:
    broken = mutant.text(ROOT)
    if mutant.path.endswith(".py"):
        ast.parse(broken)
    assert broken != (ROOT / mutant.path).read_text("utf-8")
    for test in mutant.tests:
        path, _, name = test.partition("::")
        found = (ROOT / path).read_text("utf-8")
        assert f"def {name.partition('[')[0]}(" in found or not name


def test_each_has_a_name_of_its_own() -> None:
    names = Counter(one.name for one in MUTANTS)
    assert [name for name, count in names.items() if count > 1] == []


def test_a_text_that_is_not_there_or_twice_is_told(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("a = 1\nb = 1\n", "utf-8")
    for old in ("1", "2"):
        with pytest.raises(NoSuchText):
            Mutant("n", "o", "m.py", ((old, "3"),), ()).text(tmp_path)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project of one function, whose test knows `<` from `>` alone."""
    source = "def less(a: int, b: int) -> bool:\n    return a < b\n"
    (tmp_path / "m.py").write_text(source, "utf-8")
    (tmp_path / "test_m.py").write_text(TEST, "utf-8")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def made(new: str) -> Mutant:
    return Mutant(f"with {new}", "of here", "m.py", (("a < b", new),), ("test_m.py",))


def test_what_a_test_notices_is_killed_and_what_none_does_survives(
    project: Path,
) -> None:
    with Tree.copied(project) as tree:
        journal = Journal(project / "journal")
        both = [made("a > b"), made("a <= b")]
        assert museum.survivors(tree, both, journal) == [both[1]]
        assert (tree.root / "m.py").read_text("utf-8").endswith("a < b\n")
        again = Journal(project / "journal")  # a run that was cut resumes
        (tree.root / "test_m.py").write_text("def test_it(): assert 0\n", "utf-8")
        (tree.root / "test_m.py").write_text(TEST, "utf-8")
        assert museum.survivors(tree, both, again) == [both[1]]


def test_tests_that_fail_by_themselves_kill_nothing(project: Path) -> None:
    (project / "test_m.py").write_text("def test_it(): assert False\n", "utf-8")
    with Tree.copied(project) as tree, pytest.raises(SystemExit, match="without"):
        museum.survivors(tree, [made("a > b")], Journal(project / "journal"))


def test_what_does_not_end_is_killed(project: Path) -> None:
    endless = "while True:\n    pass\n"
    with Tree.copied(project) as tree, tree.broken("m.py", endless):
        outcome = trial.tried(tree.root, ["test_m.py"], cpu_s=1, wall_s=60.0)
    assert outcome.killer == trial.TIMEOUT


def test_a_trial_loads_what_its_mutant_reaches_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    preload = Preload(ROOT)
    preload.load(["tests/unit/pipeline/test_loop.py", "tests/unit/test_lsn.py"])
    kept = preload.untouched("walstream/pipeline/ledger.py")
    assert {"walstream.lsn", "walstream.pipeline.pgoutput.decode"} <= kept
    broken = {"walstream.pipeline.ledger", "walstream.pipeline.loop"}
    assert not broken & kept
    assert not [name for name in kept if name.startswith("tests.")]
    package = preload.untouched("walstream/pipeline/pgoutput/__init__.py")
    assert "walstream.pipeline.pgoutput.decode" not in package


def test_a_change_is_made_alone_and_named() -> None:
    found = list(changes("def f(a, b):\n    if a < b and not a:\n        return 1\n"))
    assert [one.place for one in found] == [
        "f: a < b and (not a) -> a < b or not a",
        "f: a < b and (not a) -> not (a < b and (not a))",
        "f: a < b -> a <= b",
        "f: not a -> a",
        "f: 1 -> 2",
    ]
    assert found[2].text == "def f(a, b):\n    if a <= b and (not a):\n        return 1"
    assert found[4].text == "def f(a, b):\n    if a < b and (not a):\n        return 2"


@pytest.mark.parametrize("module", MODULES)
def test_a_survivor_that_is_explained_can_still_be_made(module: str) -> None:
    for test in MODULES[module]:
        assert (ROOT / test).exists()
    places = {one.place for one in changes((ROOT / module).read_text("utf-8"))}
    reasons = explained(module)
    assert set(reasons) <= places
    assert all(reasons.values())


def test_a_module_whose_tests_miss_a_change_is_below_the_goal(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Tree.copied(project) as tree:
        module = MeasuredModule(
            tree, "m.py", ("test_m.py",), Journal(project / "journal")
        )
        assert not module.measured(float("inf"))
        said = capsys.readouterr().out
        assert "m.py: 50.0 %, 2 mutants, 1 killed, 0 equivalent" in said
        assert "line 2, less: a < b -> a <= b" in said
        test = f"{TEST}    assert not less(1, 1)\n"
        (tree.root / "test_m.py").write_text(test, "utf-8")
        better = MeasuredModule(
            tree, "m.py", ("test_m.py",), Journal(project / "journal")
        )
        assert better.measured(float("inf"))
    assert "m.py: 100.0 %, 2 mutants, 2 killed" in capsys.readouterr().out
