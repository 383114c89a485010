"""Tests against a broken tree, in a forked process: which of them fails first.

What is not the project's is loaded once, before the fork: starting Python and loading
pytest, Hypothesis and psycopg anew would take longer than most of the tests.
"""

import contextlib
import gc
import importlib
import os
import resource
import selectors
import signal
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, settings

_LOADED: Final = (
    *("hypothesis", "hypothesis.strategies", "hypothesis.stateful", "psycopg.rows"),
    *("confluent_kafka.admin", "lmdb", "orjson", "structlog", "yaml", "psycopg.sql"),
    *(
        "asyncio",
        "concurrent.futures",
        "sqlite3",
        "unittest.mock",
        "pydantic.dataclasses",
    ),
    *("cryptography.x509", "cryptography.hazmat.primitives.asymmetric.rsa", "pymysql"),
    *("cryptography.hazmat.primitives.serialization", "anyio.pytest_plugin", "psutil"),
    *("jsonschema", "xml.etree.ElementTree", "pydantic.functional_validators"),
)
_PROJECT: Final = ("walstream", "consumer", "tests", "bench")
_MEMORY: Final = 8 << 30  # bytes: what a mutant allocates without end
_FAILED: Final = {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}
_BARE: Final = ("--noconftest", "-p", "no:xdist", "-p", "no:anyio")
TIMEOUT: Final = "(it did not end)"
BREAKS: Final = "(the tests cannot be loaded)"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tests said."""

    killer: str  # the first test that failed; "": all passed
    seconds: float


class TrialError(Exception):
    """The tests could not be asked."""


class _First:
    """Plugin: the name of the first test that failed."""

    def __init__(self) -> None:
        self.name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.name:
            self.name = BREAKS


def load() -> None:
    """Load what all trials share."""
    for name in _LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # conftest.py's own, for what is run without it; nobody wants a small example
    settings.register_profile(
        "museum",
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        phases=[Phase.explicit, Phase.generate],
        database=None,
    )
    settings.load_profile("museum")
    gc.freeze()  # pytest collects what is garbage, twice


def tried(
    root: Path,
    tests: Sequence[str],
    *,
    cpu_s: int,
    wall_s: float,
    kept: Collection[str] | None = None,
) -> Outcome:
    """Run tests of a tree, up to the first that fails.

    `kept`: modules of this tree that are loaded already; without None the tests need no
    fixture of the project's, the loading of which takes half of the time.
    """
    began = time.monotonic()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _drop(kept or ())
        _run(root, [*(() if kept is None else _BARE), *tests], writer, cpu_s)
    os.close(writer)
    try:
        said = _read(reader, began + wall_s)
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    seconds = round(time.monotonic() - began, 1)
    if not said.endswith("\n"):  # killed, by its limit or ours
        return Outcome(TIMEOUT, seconds)
    code, _, killer = said.strip().partition(" ")
    if int(code) == pytest.ExitCode.OK:
        return Outcome("", seconds)
    if killer or int(code) in _FAILED:
        return Outcome(killer or BREAKS, seconds)
    raise TrialError(f"pytest ended with {code} for {' '.join(tests)}")


def _read(reader: int, deadline: float) -> str:
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(reader, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if selector.select(left):
                more = os.read(reader, 4096)
                if not more:
                    break
                said += more
                if said.endswith(b"\n"):
                    break
    return said.decode()


def _run(root: Path, arguments: Sequence[str], writer: int, cpu_s: int) -> None:
    """Be the process of the tests; never return."""
    try:
        os.setpgid(0, 0)
        silence = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silence, descriptor)
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        _enter(root)
        first = _First()
        options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly"]
        options += ["--hypothesis-seed=0", "-m", "not fault_long and not compiled"]
        # of what is loaded already
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = int(pytest.main([*options, *arguments], plugins=[first]))
        os.write(writer, f"{code} {first.name}\n".encode())
    except BaseException as error:  # noqa: BLE001 - a forked process ends here
        os.write(writer, f"1 {type(error).__name__} outside of any test\n".encode())
    finally:
        os._exit(0)


def _drop(kept: Collection[str]) -> None:
    """Forget the project's modules but these."""
    for name in [name for name in sys.modules if name.split(".")[0] in _PROJECT]:
        if name not in kept:
            del sys.modules[name]
            package, _, own = name.rpartition(".")
            # else `from package import module` gives the one of before
            if package in sys.modules:
                sys.modules[package].__dict__.pop(own, None)


def _enter(root: Path) -> None:
    """Let what is loaded from now on be the tree's."""
    os.chdir(root)
    os.environ["PYTHONPATH"] = str(root)
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
