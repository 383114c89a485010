"""Standard error as a pipe, so that one thread alone writes to the terminal.

Worker processes and Spark inherit the pipe: their lines come out of it beside those of
this process, and nothing is written onto a status line.
"""

import contextlib
import os
import select
from collections.abc import Iterator
from typing import Final

_STDERR: Final = 2
_READ: Final = 65536  # bytes: what a pipe holds
_LONGEST: Final = 1 << 20  # bytes of a line that is kept whole


class StderrPipe:
    """Takes descriptor 2 over, until it is restored; `terminal` is what it was."""

    def __init__(self) -> None:
        self.terminal = os.dup(_STDERR)
        self._out, into = os.pipe()
        os.dup2(into, _STDERR)
        os.close(into)
        self._wake_out, self._wake_in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._partial = b""
        self._restored = False

    def restore(self) -> None:
        """Make descriptor 2 the terminal again; what was written before is read."""
        os.dup2(self.terminal, _STDERR)
        self._restored = True
        self.wake()

    def wake(self) -> None:
        """End the wait of `lines`; from any thread."""
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._wake_in, b"\0")

    def lines(self, timeout_s: float | None) -> Iterator[bytes] | None:
        """Return the lines that came, perhaps none; None: all was read, it is over.

        Waits for one, for `wake`, or for the time.
        """
        over = self._restored  # before the look: what comes behind is no longer ours
        ready, _, _ = select.select(
            [self._out, self._wake_out], [], [], 0 if over else timeout_s
        )
        if self._wake_out in ready:
            os.read(self._wake_out, _READ)
        data = os.read(self._out, _READ) if self._out in ready else b""
        if not data and over:
            rest, self._partial = self._partial, b""
            return iter([rest]) if rest else None
        *whole, self._partial = (self._partial + data).split(b"\n")
        if len(self._partial) > _LONGEST:
            whole.append(self._partial)
            self._partial = b""
        return iter(whole)

    def close(self) -> None:
        for descriptor in (self._out, self._wake_out, self._wake_in, self.terminal):
            os.close(descriptor)
