"""`walstream` by fork from a process that has it loaded: see `fork_server`."""

import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self

SERVER: Final = Path(__file__).with_name("fork_server.py")
# what a process reads when it starts, or loads its modules
_AT_START: Final = re.compile(r"PYTHON|LD_|MALLOC_|OPENSSL_|WALSTREAM_PURE")


class ForkServer:
    """The process that forks, with the environment that all are to have."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._lock = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-P", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"MALLOC_ARENA_MAX": "2", **os.environ, **environment},
            start_new_session=True,
        )

    def start(
        self,
        *arguments: str,
        stdout: Path,
        stderr: Path | None = None,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> "Forked":
        """Run `walstream` with these arguments; without `stderr` all is one file.

        Without an `environment` it has the server's.
        """
        request = {
            "arguments": arguments,
            "folder": str(folder or Path.cwd()),
            "environment": environment,
            "stdout": str(stdout),
            "stderr": str(stderr or stdout),
        }
        for file in (stdout, stderr or stdout):
            file.write_bytes(b"")  # who reads it is not to be faster
        return Forked(self, self.ask(request))

    def ask(self, request: Mapping[str, Any]) -> Any:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with self._lock:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
            return json.loads(stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.communicate(timeout=30)


class Forked:
    """What a subprocess.Popen is, as far as it is asked here."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self._server, self.pid = server, pid
        self._ended = os.pidfd_open(pid)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        return self._code(0)

    def wait(self, timeout: float = 60.0) -> int:
        code = self._code(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("walstream", timeout)
        return code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, 9)

    def _code(self, timeout_s: float) -> int | None:
        if self.returncode is None and self._has_ended(timeout_s):
            os.close(self._ended)
            self.returncode = self._server.ask({"pid": self.pid})
        return self.returncode

    def _has_ended(self, timeout_s: float) -> bool:
        events = select.poll()
        events.register(self._ended, select.POLLIN)
        return bool(events.poll(timeout_s * 1000))


class SharedForks:
    """One such process for all tests of this process, if the run has `--fork`."""

    def __init__(self) -> None:
        self.wanted = False
        self._server: ForkServer | None = None
        self._fixed: dict[str, str] = {}

    def server(self) -> ForkServer | None:
        """Give it; None: the test wants the command, or what only that can have."""
        if not self.wanted:
            return None
        if self._server is None:
            self._fixed = _fixed()
            self._server = ForkServer({})
        return self._server if self._fixed == _fixed() else None

    def close(self) -> None:
        if self._server is not None:
            self._server.__exit__(None, None, None)


def _fixed() -> dict[str, str]:
    """Give the variables that cannot be changed once a process runs."""
    return {name: text for name, text in os.environ.items() if _AT_START.match(name)}


SHARED: Final = SharedForks()
