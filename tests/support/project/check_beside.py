"""`--beside COMMAND`: a check that runs while the tests do, and may fail their run.

mypy takes one processor for half a minute: before the tests, the others would be idle.
A run whose check has failed ends with the tests that are under way. A signal ends the
check as all else that the run started (`interruption`).
"""

import shlex
import subprocess
import tempfile
from typing import IO, Any

import pytest

_ENDS_S = 600.0


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("beside").addoption(
        "--beside", metavar="COMMAND", help="run this beside the tests: it must succeed"
    )


@pytest.hookimpl(trylast=True)  # behind the run's mark, by which a signal ends it
def pytest_configure(config: pytest.Config) -> None:
    command = config.getoption("--beside")
    if command and not hasattr(config, "workerinput"):
        config.pluginmanager.register(CheckBeside(config, command), "check-beside")


class CheckBeside:
    """The check of one run, of its controller."""

    def __init__(self, config: pytest.Config, command: str) -> None:
        self._config = config
        self._command = command
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - the run's
        self._process = subprocess.Popen(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
        )

    @pytest.hookimpl
    def pytest_runtest_logreport(self) -> None:
        """Start no more tests once it has failed."""
        if self._process.poll():
            loop: Any = self._config.pluginmanager.getplugin("dsession")
            if loop is not None:
                loop.shouldstop = self._failure

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._process.wait(_ENDS_S) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl
    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        self._output.seek(0)
        text = self._output.read().decode(errors="replace").strip()
        self._output.close()
        title = self._failure if self._process.returncode else self._command
        terminalreporter.write_sep("=", title)
        terminalreporter.write_line(text)

    @property
    def _failure(self) -> str:
        return f"failed: {self._command}"
