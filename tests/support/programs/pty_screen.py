"""A program at a terminal of its own, and what stands on that terminal meanwhile."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from tests.support.deadline import within

_CONTROL: Final = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")
_END_S: Final = 60.0
_TAKE: Final = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # what is typed there is a signal to it
os.execv(sys.argv[1], sys.argv[1:])
"""


class Emulator:
    """The lines of a terminal that scrolls up, and whether its cursor is shown.

    It knows what rich writes: colours, up, erase, carriage return.
    """

    def __init__(self) -> None:
        self.lines = [""]
        self.cursor_shown = True
        self._row = 0
        self._column = 0

    @property
    def cursor(self) -> tuple[int, int]:
        """Its row and column."""
        return self._row, self._column

    def feed(self, text: str) -> None:
        """Take in what a program wrote."""
        place = 0
        while place < len(text):
            found = _CONTROL.match(text, place)
            if found:
                self._control(found[1], found[2])
                place = found.end()
            else:
                self._put(text[place])
                place += 1

    def _control(self, given: str, letter: str) -> None:
        if letter == "A":
            self._row -= int(given or 1)
        elif letter == "K" and given == "2":
            self.lines[self._row] = ""
        elif given == "?25":
            self.cursor_shown = letter == "h"
        else:
            assert letter == "m", f"a control sequence that rich wrote: {given}{letter}"

    def _put(self, char: str) -> None:
        if char == "\r":
            self._column = 0
        elif char == "\n":
            self._row += 1
            if self._row == len(self.lines):
                self.lines.append("")
        else:
            line = self.lines[self._row].ljust(self._column)
            self.lines[self._row] = (
                line[: self._column] + char + line[self._column + 1 :]
            )
            self._column += 1


class PtyProgram:
    """A program whose standard streams are a terminal; Ctrl-C is typed there."""

    def __init__(
        self,
        command: Sequence[object],
        *,
        columns: int = 80,
        rows: int = 24,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._master, terminal = pty.openpty()
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, size)
        self.moments: list[tuple[str, ...]] = []  # all lines, after each write
        self.emulator = Emulator()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _TAKE, *map(str, command)],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TERM": "xterm", **(environment or {})},
            start_new_session=True,
        )
        os.close(terminal)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        left = b""
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # all who had the terminal have ended
                return
            text, left = _decoded(left + data)
            self.emulator.feed(text)
            self.moments.append(tuple(self.emulator.lines))

    @property
    def text(self) -> str:
        """What stands there now."""
        return "\n".join(self.emulator.lines)

    def until(self, words: str, timeout_s: float = 60.0) -> Self:
        """Wait until these words stood there; fail when it ends before."""

        def shown() -> bool:
            ended = self.process.poll() is not None
            assert words in self.text or not ended, self.text
            return words in self.text

        assert within(shown, timeout_s), f"no {words!r} in {timeout_s} s:\n{self.text}"
        return self

    def press_ctrl_c(self) -> None:
        os.write(self._master, b"\x03")

    def hang_up(self) -> None:
        """Close the terminal while the program runs."""
        os.close(self._master)
        self._master = -1

    def wait(self) -> int:
        """Wait for its end; return the exit code when all that it wrote was read."""
        code = self.process.wait(_END_S)
        self._thread.join(_END_S)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            deadline = time.monotonic() + _END_S
            while self.process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
        self._thread.join(_END_S)
        if self._master >= 0:
            os.close(self._master)


def _decoded(data: bytes) -> tuple[str, bytes]:
    """Return text, and the bytes of a character or sequence that is not whole."""
    cut = len(data)
    start = data.rfind(b"\x1b")
    if start >= 0 and not re.match(rb"\x1b\[[?0-9;]*[A-Za-z]", data[start:]):
        cut = start
    for back in range(4):
        try:
            return data[: cut - back].decode(), data[cut - back :]
        except UnicodeDecodeError:
            continue
    return data.decode(errors="replace"), b""
