"""A long run in parts: `--shard 2/4`, and `--resume`, which goes on where one ended.

What passed is written down as it passes, with the state of the code that it passed on:
another state makes the record worthless.
"""

import hashlib
import subprocess
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

_PHASES = {"setup", "call", "teardown"}


@dataclass(frozen=True)
class Shard:
    """One of `count` parts; `number` begins at 1."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        number, slash, count = text.partition("/")
        if not (slash and number.isdigit() and count.isdigit()):
            raise pytest.UsageError(f"--shard {text}: it is written 2/4")
        if not 1 <= int(number) <= int(count):
            raise pytest.UsageError(f"--shard {text}: there is no such part")
        return cls(int(number), int(count))

    def has(self, nodeid: str) -> bool:
        """Tell whether a test is in it: by its name, so that it stays there."""
        return zlib.crc32(nodeid.encode()) % self.count == self.number - 1


class Record:
    """The tests that passed, a line each; the first line is the code's state."""

    def __init__(self, path: Path, state: str) -> None:
        self._path = path
        self._state = state

    def begin(self, *, resume: bool) -> None:
        """Begin anew, unless what is there is of this state and counts."""
        if not (resume and _state_in(self._path) == self._state):
            self._path.write_text(f"{self._state}\n", "utf-8")

    def add(self, nodeid: str) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{nodeid}\n")

    def passed(self) -> set[str]:
        """Give all that passed, in other shards' records too."""
        found: set[str] = set()
        for path in self._path.parent.glob(f"{self._path.name.partition('@')[0]}*"):
            if _state_in(path) == self._state:
                found.update(path.read_text("utf-8").splitlines()[1:])
        return found


def _state_in(path: Path) -> str:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return lines[0] if lines else ""


class Sharding:
    """Plugin: leaves out what is another shard's or passed before, and writes down."""

    def __init__(self, shard: Shard, record: Record | None, *, resume: bool) -> None:
        self._shard = shard
        self._record = record
        self._before = record.passed() if record is not None and resume else set()
        self._phases: dict[str, set[str]] = {}
        if record is not None:
            record.begin(resume=resume)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        left = [one for one in items if self._is_due(one.nodeid)]
        out = [one for one in items if not self._is_due(one.nodeid)]
        config.hook.pytest_deselected(items=out)
        items[:] = left

    def _is_due(self, nodeid: str) -> bool:
        return self._shard.has(nodeid) and nodeid not in self._before

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._record is None or not report.passed:
            return
        phases = self._phases.setdefault(report.nodeid, set())
        phases.add(str(report.when))
        if phases == _PHASES:
            self._record.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Take a shard that has nothing left to do for no failure."""
        if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and (
            self._before or self._shard.count > 1
        ):
            session.exitstatus = pytest.ExitCode.OK


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("parts of a long run")
    group.addoption("--shard", metavar="N/M", help="run only part N of M")
    group.addoption("--record", metavar="FILE", help="write the passed tests to FILE")
    group.addoption(
        "--resume", action="store_true", help="skip tests that --record lists as passed"
    )


def pytest_configure(config: pytest.Config) -> None:
    text, record = config.getoption("--shard"), config.getoption("--record")
    resume = bool(config.getoption("--resume"))
    if resume and not record:
        raise pytest.UsageError("--resume goes on where --record says; name its file")
    shard = Shard.parse(text) if text else Shard()
    if not text and not record:
        return
    kept = None
    if record:
        of_shard = f"@{shard.number}-of-{shard.count}" if text else ""
        path = config.rootpath / f"{record}{of_shard}"
        kept = Record(path, code_state(config.rootpath))
    config.pluginmanager.register(Sharding(shard, kept, resume=resume), "sharding")


def code_state(root: Path) -> str:
    """Name the commit, and what was changed since by its hash."""
    commit = _git(root, "rev-parse", "HEAD").decode().strip()
    changed = _git(root, "diff", "HEAD")
    if not changed:
        return commit
    return f"{commit}+{hashlib.sha256(changed).hexdigest()[:12]}"


def _git(root: Path, *arguments: str) -> bytes:
    command: Iterable[str] = ("git", "-C", str(root), *arguments)
    return subprocess.run([*command], capture_output=True, check=False).stdout
