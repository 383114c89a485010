"""Verbs of the installed command: in a pipe, and at a terminal where somebody types."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import jsonschema

from tests.support.deadline import wait_until
from tests.support.programs import fork
from tests.support.project.own_coverage import ROOT

WIDEST: Final = 100
_COMMAND: Final = Path(sys.executable).with_name("walstream")
_WAIT_S: Final = 60.0
_NOWHERE: Final = Path("/")  # no configuration lies there

Done = subprocess.CompletedProcess[str]


def _words(configuration: Path | None, arguments: tuple[str, ...]) -> list[str]:
    words = [str(_COMMAND), *arguments]
    return words if configuration is None else [*words, "-c", str(configuration)]


def verb(
    configuration: Path | None,
    *arguments: str,
    folder: Path = _NOWHERE,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = _WAIT_S,
) -> Done:
    """Run one in a pipe, where nobody can be asked."""
    server = None if environment else fork.SHARED.server()
    if server is not None:
        words = _words(configuration, arguments)
        return _forked(server, words, folder, timeout_s)
    return subprocess.run(
        _words(configuration, arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
        cwd=folder,
        env={**os.environ, **(environment or {})},
    )


def _forked(
    server: fork.ForkServer, words: list[str], folder: Path, timeout_s: float
) -> Done:
    with TemporaryDirectory() as files:
        stdout, stderr = Path(files, "stdout"), Path(files, "stderr")
        started = server.start(
            *words[1:],
            stdout=stdout,
            stderr=stderr,
            folder=folder,
            environment=dict(os.environ),
        )
        try:
            code = started.wait(timeout_s)
        finally:
            started.kill()
        return Done(words, code, stdout.read_text("utf-8"), stderr.read_text("utf-8"))


def as_json(configuration: Path | None, schema: str, *arguments: str) -> dict[str, Any]:
    """Run one with --json; give what its published schema takes."""
    done = verb(configuration, *arguments, "--json")
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(found, published(schema))
    return found


def published(schema: str) -> dict[str, Any]:
    """Read a schema as it was published."""
    found: dict[str, Any] = json.loads(
        (ROOT / "docs" / "schemas" / f"{schema}.json").read_text("utf-8")
    )
    return found


def is_plain(text: str) -> bool:
    """Tell whether it fits the page and holds nothing that drives a terminal."""
    narrow = all(len(line) <= WIDEST for line in text.splitlines())
    return narrow and text.isascii() and "\x1b" not in text


class Terminal:
    """One verb at a real terminal of 80 columns."""

    def __init__(self, configuration: Path | None, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        os.set_blocking(self._master, False)
        self._said = b""
        self._process = subprocess.Popen(
            _words(configuration, arguments),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            cwd=_NOWHERE,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        )
        os.close(slave)

    @property
    def text(self) -> str:
        try:
            while part := os.read(self._master, 65536):
                self._said += part
        except OSError:
            pass  # nothing more for now, or for ever
        return self._said.decode()

    def types(self, answer: str, *, at: str) -> "Terminal":
        """Answer once it has asked."""
        try:
            wait_until(lambda: at in self.text, _WAIT_S, f"it asks {at!r}")
        except AssertionError:
            self.kill()
            raise
        os.write(self._master, f"{answer}\n".encode())
        return self

    def _has_ended(self) -> bool:
        # read on meanwhile: a full terminal would hold it up
        return bool(self.text) and self._process.poll() is not None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def ends(self) -> tuple[int, str]:
        """Give its exit code, and all that it wrote."""
        try:
            wait_until(self._has_ended, _WAIT_S, "it ends")
        except AssertionError:
            self.kill()
            raise
        code, text = self._process.wait(), self.text
        os.close(self._master)
        return code, text
