"""Skipped tests fail the run in CI, unless may_skip.txt names them."""

import os
from pathlib import Path

import pytest


class Watch:
    """Plugin: collects what was skipped, and tells at the end."""

    def __init__(self, allowed: Path) -> None:
        self._allowed = prefixes(allowed.read_text("utf-8"))
        self._skipped: list[str] = []

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self._skipped.append(report.nodeid)

    @pytest.hookimpl
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self._skipped.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._forbidden() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        if forbidden := self._forbidden():
            terminalreporter.section("skipped, which fails the run in CI", red=True)
            for nodeid in forbidden:
                terminalreporter.line(nodeid)

    def _forbidden(self) -> list[str]:
        if not os.environ.get("CI"):
            return []
        return [one for one in self._skipped if not one.startswith(self._allowed)]


def prefixes(text: str) -> tuple[str, ...]:
    named = (line.partition("  #")[0].strip() for line in text.splitlines())
    return tuple(name for name in named if name and not name.startswith("#"))
