"""A second of each reader against inputs that nobody wrote, and what finds them."""

import os
import subprocess
import sys
import time

import pytest

from tests.fuzz.__main__ import ROOT, fuzzed
from tests.fuzz.mutator import mutated, shrunk
from tests.fuzz.targets import BY_NAME, TARGETS, Target
from tests.support.runtime import altered

HERE = [one for one in TARGETS if not one.apart]


@pytest.mark.parametrize("target", HERE, ids=[one.name for one in HERE])
def test_no_other_error_escapes_than_is_documented(target: Target) -> None:
    for entry in target.corpus:
        assert target.finds(entry) is None
    counts: dict[str, int] = {}
    assert not fuzzed([target], counts, "test", 0.5)
    assert sum(counts.values()) > 0


@pytest.mark.parametrize("name", [one.name for one in TARGETS if one.apart])
def test_what_may_end_a_process_ends_none(name: str) -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--fresh", "--seed", "test"]
    done = subprocess.run(
        [*command, "--seconds", "1", "--target", name],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_server_of_http_grows_stale_while_it_is_fuzzed() -> None:
    status = b"GET /status\nhost: 127.0.0.1"
    assert BY_NAME["http"].run(status) == [200]
    later = time.monotonic() + 3600.0
    with altered(monotonic=lambda: later):
        assert BY_NAME["http"].run(status) == [200]


def test_an_input_is_that_of_its_seed() -> None:
    corpus = [b"abc", b"defgh"]
    made = [mutated(corpus, f"{number}") for number in range(50)]
    assert made == [mutated(corpus, f"{number}") for number in range(50)]
    assert len(set(made)) > 40


def test_an_input_shrinks_to_what_fails() -> None:
    assert shrunk(b"xxxxaxxbxx", lambda data: b"a" in data and b"b" in data) == b"ab"


def test_an_error_that_is_not_documented_is_found(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Brittle(Target):
        corpus = [b"12"]  # noqa: RUF012 - as an attribute

    target = Brittle("brittle", lambda data: int(data or b"0"), ())
    assert fuzzed([target], {}, "test", 10)
    assert "ValueError" in capsys.readouterr().out
