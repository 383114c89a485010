"""A worker's pipes to its supervisor, out of the reach of plugins.

Handlers print, and what they start reads and closes standard input: a line of theirs
among the reports, or a lock that a thread holds while it reads, would cut the worker
off.
"""

import fcntl
import os
import sys
from collections.abc import Iterator
from typing import Final

_READ: Final = 65536  # bytes: what a pipe holds


class SupervisorPipes:
    """Words that come in, and reports that go out: by stdin and stdout until `hide`."""

    def __init__(self) -> None:
        self._words, self._reports = 0, 1

    def hide(self) -> None:
        """Take descriptors of its own; stdin is empty from now on, stdout is stderr."""
        words, reports = _own(self._words), _own(self._reports)
        nothing = os.open(os.devnull, os.O_RDWR)  # as 2, where nobody gave that
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        os.close(nothing)
        # by whole lines, which go between those of the log
        sys.stdout = open(1, "w", 1, "utf-8", "backslashreplace", closefd=False)  # noqa: SIM115 - a descriptor, to the end
        self._words, self._reports = words, reports

    def words(self) -> Iterator[str]:
        """Yield each line that comes, to the supervisor's end.

        Nothing of it holds a lock: a child may be forked meanwhile.
        """
        partial = b""
        while data := os.read(self._words, _READ):
            *lines, partial = (partial + data).split(b"\n")
            for line in lines:
                yield line.decode()

    def write(self, report: bytes) -> None:
        """Write all of a report; raise OSError where nobody reads."""
        while report:
            report = report[os.write(self._reports, report) :]


def _own(descriptor: int) -> int:
    """Return another one of the same, which no child that it starts gets."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
