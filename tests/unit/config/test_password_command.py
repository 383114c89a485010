"""What a command prints is a password; what it may do instead."""

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import psutil
import pytest

from tests.support.deadline import wait_until
from tests.support.runtime import altered
from walstream.config import password_command
from walstream.config.password_command import password_of
from walstream.errors import ConfigError, Transient, WalstreamError


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


@pytest.mark.parametrize(
    ("code", "password"),
    [
        ("print('word')", "word"),
        ("print('w o r d ')", "w o r d "),
        ("print('word\\r\\nand more')", "word"),
        ("import sys; sys.stdout.write('no newline')", "no newline"),
        ("import sys; print(sys.stdin.read() or 'nothing is there to read')", None),
    ],
)
def test_its_first_line_is_the_password(code: str, password: str | None) -> None:
    assert password_of(python(code)) == (password or "nothing is there to read")


@pytest.mark.parametrize(
    ("command", "kind", "text"),
    [
        (["/nowhere/token"], ConfigError, "cannot be run: No such file"),
        (["/etc/passwd"], ConfigError, "cannot be run: Permission denied"),
        (python("raise SystemExit(7)"), Transient, "ended with code 7"),
        (python("import os; os.kill(os.getpid(), 9)"), Transient, "signal 9"),
        (python(""), Transient, "printed no password"),
        (python("print(); print('second')"), Transient, "printed no password"),
        (
            python("import sys; sys.stdout.buffer.write(b'\\xff')"),
            Transient,
            "printed no password",
        ),
    ],
)
def test_what_it_does_wrong_is_told_without_its_words(
    command: Sequence[str], kind: type[WalstreamError], text: str
) -> None:
    with pytest.raises(kind, match=text) as raised:
        password_of(command)
    assert "by hand as walstream's user" in raised.value.hint
    # what it cannot be run for may be its package's upgrade, where it ran before
    assert raised.value.renewable == (kind is ConfigError)


def test_what_it_prints_and_complains_is_not_shown() -> None:
    code = "import sys; print('hidden'); sys.stderr.write('hidden'); sys.exit(1)"
    with pytest.raises(Transient) as raised:
        password_of(python(code))
    assert "hidden" not in str(raised.value)  # nor its arguments


def test_one_that_takes_too_long_is_ended_with_what_it_started(
    tmp_path: Path,
) -> None:
    file = tmp_path / "pid"

    asked = count()

    def monotonic() -> float:
        """Its time begins at 0, and is up as soon as it has started its child."""
        if next(asked) == 0:
            return 0.0
        return 31.0 if file.exists() and file.read_text().endswith("\n") else 0.0

    with (
        altered(monotonic=monotonic),
        pytest.raises(Transient, match="takes longer than"),
    ):
        password_of(["sh", "-c", f"sleep 600 & echo $! > {file}; wait"])
    wait_until(lambda: not _runs(int(file.read_text())), 10, "its child ended")


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_what_it_leaves_running_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An agent inherits what the password is printed to, and keeps it open."""
    monkeypatch.setattr(password_command, "_TIMEOUT_S", 30.0)
    agent = "import os, time; os.write(1, b'word\\n'); os.fork() or time.sleep(60)"
    assert password_of(python(agent)) == "word"


def test_one_that_prints_without_end_is_ended() -> None:
    with pytest.raises(Transient, match="prints more than 64 KiB"):
        password_of(["yes"])


def test_where_no_process_is_left_it_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", refused)
    with pytest.raises(Transient, match="temporarily unavailable"):
        password_of(["true"])
