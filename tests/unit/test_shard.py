"""Parts of a long run, tried with runs of pytest inside this one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project.shard import Record, Shard

ROOT = Path(__file__).parents[2]
_TESTS = """
import pytest
@pytest.mark.parametrize("n", range(20))
def test_one(n):
    assert n != 7
"""


def test_every_test_is_in_one_shard() -> None:
    shards = [Shard(number, 4) for number in range(1, 5)]
    names = [f"tests/fault/test_a.py::test_b[{number}]" for number in range(400)]
    for name in names:
        assert sum(shard.has(name) for shard in shards) == 1
    for shard in shards:
        assert 60 < sum(map(shard.has, names)) < 140


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "a/b", "1/2/3"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="--shard"):
        Shard.parse(text)


def test_a_record_counts_for_the_state_that_it_was_made_on(tmp_path: Path) -> None:
    path = tmp_path / ".passed"
    first = Record(path, "a")
    first.begin(resume=True)
    first.add("one")
    again = Record(path, "a")
    again.begin(resume=True)
    assert again.passed() == {"one"}
    other = Record(path, "b")
    assert other.passed() == set()
    other.begin(resume=True)
    assert first.passed() == set()


def test_records_of_other_shards_count_too(tmp_path: Path) -> None:
    for name in (".passed@1-of-2", ".passed@2-of-2"):
        record = Record(tmp_path / name, "a")
        record.begin(resume=False)
        record.add(f"of {name}")
    whole = Record(tmp_path / ".passed", "a")
    assert whole.passed() == {"of .passed@1-of-2", "of .passed@2-of-2"}


def test_a_run_that_goes_on_leaves_out_what_passed(tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text(_TESTS)
    assert _run(tmp_path, "--record=.passed", "-x") == (7, 1)
    assert _run(tmp_path, "--record=.passed", "--resume") == (12, 1)
    assert _run(tmp_path, "--record=.passed") == (19, 1)


def test_shards_together_are_the_whole(tmp_path: Path) -> None:
    (tmp_path / "test_inner.py").write_text(_TESTS)
    ran = [_run(tmp_path, "--shard", f"{number}/2") for number in (1, 2)]
    assert (sum(one for one, _ in ran), sum(one for _, one in ran)) == (19, 1)


def _run(folder: Path, *options: str) -> tuple[int, int]:
    """Run pytest; give how many passed and failed."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.support.project.shard"),
            *("-p", "no:randomly", "-p", "no:cacheprovider", *options),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    passed, failed = (
        re.search(rf"(\d+) {what}", ended.stdout) for what in ("passed", "failed")
    )
    return int(passed[1]) if passed else 0, int(failed[1]) if failed else 0
