"""Starts `walstream` by fork, in a process that has all loaded: run as a script.

Most of the CPU of a start are imports, and a run of the tests starts it a thousand
times. A command is a fork of this process; the first worker of a supervisor is one of
the supervisor's, made before that does anything. Requests and answers are lines of
JSON.
"""

import array
import ctypes
import fcntl
import gc
import json
import os
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from importlib import import_module
from typing import IO, Any, Final

from walstream.telemetry import structlog_loader

MODULES: Final = (
    "walstream.cli.main",
    "walstream.cli.run",
    "walstream.cli.check",
    "walstream.cli.positions",
    "walstream.cli.slots",
    "walstream.cli.status",
    "walstream.service.worker",
    "walstream.sources.postgres.session",
    "walstream.kafka.sink",
    "walstream.sources.sinks",
    "walstream.sources.postgres.bootstrap",
    "walstream.sources.postgres.incremental.table_run",
    "walstream.sources.postgres.detached.reattach",
    "walstream.sources.postgres.backfill.fencing",
    "walstream.sources.postgres.runner",
    "encodings.utf_8_sig",
    "lmdb._envid",
    "typer._adapters",
    "typer._click.decorators",
)


class _FirstWorker(subprocess.Popen[bytes]):
    """A worker that was forked before anybody asked, and waits for its order."""

    def __init__(self) -> None:
        order, self._order = os.pipe()
        self._state, state = os.pipe()
        self.args = ["worker"]
        self.pid = os.fork()
        if not self.pid:
            os.dup2(order, 0)
            os.dup2(state, 1)
            os.closerange(3, 256)
            _be_tapped("worker")
            _work()
        os.close(order)
        os.close(state)
        self.stdin: IO[bytes] = os.fdopen(self._order, "wb")
        self.stdout: IO[bytes] = os.fdopen(self._state, "rb")
        self.stderr = None
        self.returncode: Any = None
        self._child_created = True
        self._waitpid_lock = threading.Lock()
        self._sigint_wait_secs = 0.25


def _work() -> None:
    """Be the worker when there is an order; end when who would give it ended."""
    select.select([0], [], [])
    waiting = array.array("i", [0])
    fcntl.ioctl(0, termios.FIONREAD, waiting)
    if not waiting[0]:
        os._exit(0)
    import_module("walstream.service.worker").process()


class _Subprocess:
    """The module `subprocess`, as the supervisor sees it."""

    PIPE = subprocess.PIPE
    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self) -> None:
        self._first: _FirstWorker | None = _FirstWorker()
        self._user = os.geteuid()

    def Popen(  # noqa: N802 - it is called so
        self, *command: Any, **options: Any
    ) -> subprocess.Popen[bytes]:
        """Give the first worker, and then others that are started as ever."""
        first, self._first = self._first, None
        if first and os.geteuid() == self._user:
            return first
        return subprocess.Popen(*command, **options)


def _be_walstream(request: dict[str, Any]) -> None:
    """Be `walstream` with these arguments."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for number, path in ((1, request["stdout"]), (2, request["stderr"])):
        # both may be one file: neither writes over the other
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(file, number)
    os.closerange(3, 256)
    os.chdir(request["folder"])
    if request["environment"] is not None:
        os.environ.clear()
        os.environ.update({"MALLOC_ARENA_MAX": "2", **request["environment"]})
        time.tzset()
    _be_tapped("supervisor")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["walstream", *request["arguments"]]
    if request["arguments"][0] == "run":
        module: Any = import_module("walstream.service.worker_pipe")
        module.subprocess = _Subprocess()
    import_module("walstream.cli.main").main()


def _be_tapped(role: str) -> None:
    """Tell tests/callsites/shim.c, where it is loaded, what this process is now."""
    if "CALLSITES_ORDER" in os.environ:
        ctypes.CDLL(None).callsites_begin(role.encode())


def _ended(pid: int) -> int | None:
    """Give a child's exit code, as Popen does; None: it runs."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _serve() -> dict[str, Any]:
    """Answer until the input ends; in a child come back with what it is to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin:
        request = json.loads(line)
        if "pid" in request:
            answer = _ended(request["pid"])
        else:
            begun, begin = os.pipe()
            answer = os.fork()
            if not answer:
                os.setsid()
                return dict(request)  # and the pipe's other end goes
            os.close(begin)
            os.read(begun, 1)
            os.close(begun)
        print(json.dumps(answer), flush=True)  # noqa: T201 - the answer
    os._exit(0)


if __name__ == "__main__":
    structlog_loader.load_structlog()
    for name in MODULES:
        import_module(name)
    gc.freeze()
    _be_walstream(_serve())
