"""The script between a server and its parent."""

import os
import signal
import subprocess
import sys

from walstream.testing.servers import tether


def test_command_takes_the_place_of_the_tether() -> None:
    with _tethered(os.getpid(), "echo here $0", "it is") as process:
        assert process.communicate()[0] == "here it is\n"


def test_ignored_signals_are_not_passed_on() -> None:
    with _tethered(os.getpid(), "grep SigIgn /proc/$$/status") as process:
        output, _ = process.communicate()
    assert int(output.split()[1], 16) & (1 << (signal.SIGPIPE - 1)) == 0


def test_nothing_starts_once_the_parent_is_gone() -> None:
    with _tethered(1 if os.getpid() != 1 else 2, "echo started") as process:
        assert process.communicate()[0] == ""
        assert process.returncode != 0


def test_account_is_written_as_two_numbers_or_a_dash() -> None:
    assert tether.arguments(7, signal.SIGQUIT, (995, 994)) == ["7", "3", "995:994"]
    assert tether.arguments(7, signal.SIGKILL, None) == ["7", "9", "-"]


def _tethered(parent: int, script: str, *extra: str) -> subprocess.Popen[str]:
    wrapped = tether.arguments(parent, signal.SIGKILL, None)
    command = [sys.executable, "-I", "-S", tether.__file__, *wrapped]
    return subprocess.Popen(
        [*command, "/bin/sh", "-c", script, *extra],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if parent != os.getpid() else None,
        text=True,
    )
