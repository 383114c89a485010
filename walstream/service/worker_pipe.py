"""A worker's process and the two pipes to it: lines go in, reports come out."""

import contextlib
import os
import select
import subprocess
import sys
from typing import Final

from walstream.spark.parent_death import signals_held

_READ: Final = 65536  # bytes: what a pipe holds


class WorkerPipe:
    """A process that was started, until it is closed; `poll` tells how it ended."""

    def __init__(self) -> None:
        """Start the process; raise OSError where none can be started."""
        with signals_held():
            self.process = subprocess.Popen(
                # -P: what lies in the folder that it runs in is no module of its
                [sys.executable, "-P", "-m", "walstream.service.worker_main"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # librdkafka's threads would have glibc keep a heap for each
                env={"MALLOC_ARENA_MAX": "2", **os.environ},
            )
        self.pid = self.process.pid
        self._partial = b""  # of the line that is being written

    @property
    def stdout(self) -> int | None:
        """What to wait on for its reports."""
        stdout = self.process.stdout
        return stdout.fileno() if stdout and not stdout.closed else None

    def be_nice(self, nice: int) -> None:
        """Lower its priority, where that is allowed."""
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self.pid, nice)

    def tell(self, line: str) -> None:
        """Write a line; one that has ended is not told, which `poll` shows."""
        if stdin := self.process.stdin:
            with contextlib.suppress(BrokenPipeError):
                stdin.write(line.encode() + b"\n")
                stdin.flush()

    def read(self) -> tuple[bytes | None, bool]:
        """Return the last line that is whole, and whether more may come.

        Called when `stdout` can be read. None: no line has ended yet.
        """
        if (stdout := self.stdout) is None:
            return None, False
        data = os.read(stdout, _READ)
        *lines, self._partial = (self._partial + data).split(b"\n")
        return (lines[-1] if lines else None), bool(data)

    @property
    def has_more(self) -> bool:
        """Return whether something can be read at once, also after its end."""
        stdout = self.stdout
        return stdout is not None and bool(select.select([stdout], [], [], 0)[0])

    def poll(self) -> int | None:
        """Return its exit code; None: it runs."""
        return self.process.poll()

    def kill(self) -> None:
        """End it at once, by SIGKILL."""
        self.process.kill()

    def close(self) -> None:
        """Close the pipes to a process that has ended."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                with contextlib.suppress(BrokenPipeError):  # nothing is to be told now
                    pipe.close()
