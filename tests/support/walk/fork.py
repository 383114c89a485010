"""`walstream` by fork from a process that has it loaded: see `fork_server`."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Final, Self

from tests.support.programs.walstream import Walstream

_SERVER: Final = Path(__file__).with_name("fork_server.py")


class ForkServer:
    """The process that forks, with the environment that all are to have."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._lock = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-P", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"MALLOC_ARENA_MAX": "2", **os.environ, **environment},
            start_new_session=True,
        )

    def start(self, log: Path, *arguments: str) -> "Forked":
        """Run `walstream` with these arguments; what it writes goes to the log."""
        log.touch()  # who reads it is not to be faster
        return Forked(self, self.ask({"log": str(log), "arguments": arguments}))

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
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._server.ask({"pid": self.pid})
        return self.returncode

    def wait(self, timeout: float = 60.0) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("walstream", timeout)
            time.sleep(0.01)
        return code


class ForkedWalstream(Walstream):
    """`walstream run` as the server's fork."""

    server: ForkServer

    def _launch(self, arguments: Sequence[str]) -> Any:
        return self.server.start(self.log_path, *arguments)
