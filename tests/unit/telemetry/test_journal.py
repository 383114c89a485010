"""Priorities: what systemd's journal is given, and who else is not."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from walstream.telemetry import journal

_LOGS: Final = """
import structlog
from walstream.telemetry import logs
logs.configure("debug", str)
log = structlog.get_logger()
log.debug("d"); log.info("i"); log.warning("w\\nw"); log.error("e")
try:
    raise ValueError("many\\nlines")
except ValueError:
    log.exception("x")
"""
_BROKEN: Final = "from walstream.cli.main import main; main()"
_DEFECT: Final = """
from walstream.cli import main
def app(): raise LookupError("never thought of\\nat all")
main.app = app
main.main()
"""


def said(code: str, *args: str, stream: str = "") -> list[str]:
    """Give what a process says to a socket, which it is told is the journal."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        at = os.fstat(theirs.fileno())
        told = stream or f"{at.st_dev}:{at.st_ino}"
        subprocess.run(
            [sys.executable, "-c", code, *args],
            env={**os.environ, "JOURNAL_STREAM": told},
            stderr=theirs.fileno(),
            check=False,
            timeout=60,
        )
        theirs.close()
        return ours.makefile("r", encoding="utf-8").read().splitlines()


def test_each_entry_has_its_priority_in_the_journal() -> None:
    lines = said(_LOGS)
    assert [line[:3] for line in lines] == ["<7>", "<6>", "<4>", "<3>", "<3>"]
    entries = [json.loads(line[3:]) for line in lines]
    assert [entry["event"] for entry in entries] == ["d", "i", "w\nw", "e", "x"]


def test_a_variable_that_is_left_of_another_stream_says_nothing() -> None:
    lines = said(_LOGS, stream="1:2")
    assert [json.loads(line)["event"] for line in lines][:2] == ["d", "i"]


@pytest.mark.parametrize("told", [None, "", "nonsense", "1:2"])
def test_stderr_is_the_journal_only_where_it_is(
    monkeypatch: pytest.MonkeyPatch, told: str | None
) -> None:
    monkeypatch.delenv("JOURNAL_STREAM", raising=False)
    if told is not None:
        monkeypatch.setenv("JOURNAL_STREAM", told)
    assert not journal.is_stderr()


def test_a_command_that_fails_is_an_error_in_each_line(tmp_path: Path) -> None:
    broken = tmp_path / "walstream.toml"
    broken.write_text("[sources.app]\nkind = 'nothing'\n[sources.b]\nkind = 'no'\n")
    lines = said(_BROKEN, "run", "-c", str(broken))
    assert "walstream: " in lines[0]
    assert len(lines) > 1
    assert all(line.startswith("<3>") for line in lines), lines


def test_a_defect_is_an_error_in_each_line() -> None:
    lines = said(_DEFECT)
    assert any("LookupError: never thought of" in line for line in lines)
    assert all(line.startswith("<3>") for line in lines), lines


def test_empty_lines_stay_empty() -> None:
    assert journal.marked("a\n\nb\n", "error") == "<3>a\n\n<3>b\n"
    assert journal.marked("a", "of no level that is known") == "<6>a"
