"""What a command prints is a password; what it may do instead."""

import sys
from collections.abc import Sequence

import pytest

from walstream import password_command
from walstream.errors import ConfigError, Transient, WalstreamError
from walstream.password_command import password_of


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
    assert "run it by hand" in raised.value.hint


def test_what_it_prints_and_complains_is_not_shown() -> None:
    code = "import sys; print('hidden'); sys.stderr.write('hidden'); sys.exit(1)"
    with pytest.raises(Transient) as raised:
        password_of(python(code))
    assert "hidden" not in str(raised.value.args[0])


def test_one_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(password_command, "_TIMEOUT_S", 0.1)
    with pytest.raises(Transient, match="takes longer than"):
        password_of(python("import time; time.sleep(60)"))
