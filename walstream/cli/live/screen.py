"""The terminal of `walstream run`: log lines above, status lines at the bottom.

One thread writes, and nothing else does: standard error is a pipe meanwhile, which
another thread reads. What comes and what the supervisor shows is kept until it is
drawn, so a terminal that is slow or stopped holds up no loop, and no worker that logs.
"""

import contextlib
import os
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Final, Self

from rich.console import Console, ConsoleDimensions, Group
from rich.live import Live

from walstream.cli.live.line_queue import LineQueue
from walstream.cli.live.log_lines import print_line
from walstream.cli.live.status_lines import Workers, status_lines
from walstream.cli.live.stderr_pipe import StderrPipe
from walstream.cli.output import EscapingConsole
from walstream.telemetry import runtime
from walstream.telemetry.terminal import escape

_DRAW_EVERY_S: Final = 0.2
_END_S: Final = 5.0
_COLUMNS: Final = 80  # of a terminal that does not tell
_LINES: Final = 24
_TYPED: Final = 3  # columns: a ^C that wraps would move what is drawn next
_ABOVE: Final = 3  # lines of the log that stay in sight


def _console_of(descriptor: int) -> Console:
    file = os.fdopen(
        descriptor, "w", encoding="utf-8", errors="backslashreplace", closefd=False
    )
    return EscapingConsole(file=file, highlight=False, emoji=False, markup=False)


def _size_of(descriptor: int) -> ConsoleDimensions:
    """Return a terminal's size now: rich would look at standard error's."""
    try:
        columns, lines = os.get_terminal_size(descriptor)
    except OSError:  # it was closed
        columns, lines = 0, 0
    return ConsoleDimensions(columns or _COLUMNS, lines or _LINES)


class RunScreen:
    """Owns the terminal while it is entered."""

    def __init__(self, command: Callable[[str], str]) -> None:
        """`command` completes a command by the configuration's file."""
        self._command = command
        self._lines = LineQueue()
        self._workers: Workers = {}
        self._stopping = False
        self._drawn: list[str] = []
        self._drawn_at = 0.0
        self._live: Live | None = None
        self._gone = False  # the terminal was closed
        self._plain = False  # a defect here: lines are written as they come

    def __enter__(self) -> Self:
        self._pipe = StderrPipe()
        self._console = _console_of(self._pipe.terminal)
        self._reader = runtime.start_thread(self._read, "log pipe")
        self._writer = runtime.start_thread(self._run, "terminal")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pipe.restore()
        self._reader.join(_END_S)
        self._writer.join(_END_S)
        # else the terminal is stopped, by Ctrl-S say
        if not (self._reader.is_alive() or self._writer.is_alive()):
            self._pipe.close()

    @property
    def terminal(self) -> int:
        """The terminal's descriptor."""
        return self._pipe.terminal

    def show(self, workers: Workers, stopping: bool) -> None:  # noqa: FBT001
        """Take in how every source is; drawn soon."""
        self._workers, self._stopping = workers, stopping
        self._lines.wake()

    def _read(self) -> None:
        """Read the pipe whatever the terminal does: who writes into it never waits."""
        try:
            while (lines := self._pipe.lines(None)) is not None:
                self._lines.put(lines)
        finally:
            self._lines.close()

    def _run(self) -> None:
        while (lines := self._lines.take(self._wait_s())) is not None:
            for line in lines:
                self._write(partial(self._print, line), line)
            if runtime.monotonic() - self._drawn_at >= _DRAW_EVERY_S:
                self._write(self._draw)
        self._write(self._stop)

    def _wait_s(self) -> float:
        return _DRAW_EVERY_S if self._live is not None else 1.0

    def _write(self, what: Callable[[], None], line: bytes | None = None) -> None:
        """Do it, unless the terminal is gone: lines are taken all the same.

        Where it fails, the `line` and all later ones are written as they came.
        """
        if self._gone:
            return
        try:
            what()
        except OSError:
            self._gone = True
        except Exception:  # noqa: BLE001 - the log is shown, however it looks
            self._turn_plain(line)

    def _turn_plain(self, line: bytes | None) -> None:
        self._plain = True
        with contextlib.suppress(Exception):
            self._stop()
        if line is not None:
            self._write(partial(self._print_plain, line))

    def _print_plain(self, line: bytes) -> None:
        text = escape(line.decode(errors="replace"))
        os.write(self.terminal, f"{text}\n".encode())

    def _print(self, line: bytes) -> None:
        if self._plain:
            self._print_plain(line)
            return
        self._console.size = _size_of(self.terminal)
        print_line(self._console, line, self._command)

    def _draw(self) -> None:
        self._drawn_at = runtime.monotonic()
        if self._plain:
            return
        if self._console.is_dumb_terminal:
            return
        if not self._is_ours():
            # a shell writes there now: nothing of its lines is erased
            self._console.quiet = True
            self._stop()
            self._console.quiet = False
            return
        console = self._console
        console.size = _size_of(self.terminal)
        room = console.height - _ABOVE
        lines = status_lines(self._workers, room, stopping=self._stopping)
        if not lines:
            return
        for line in lines:
            line.truncate(console.width - _TYPED, overflow="ellipsis")
        drawn = [str(console.width), *(line.markup for line in lines)]
        if drawn == self._drawn:
            return
        self._drawn = drawn
        if self._live is None:
            self._live = Live(
                console=console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
            console.show_cursor()  # a shell has it also after Ctrl-Z, or SIGKILL
        self._live.update(Group(*lines), refresh=True)

    def _is_ours(self) -> bool:
        """Return whether this runs in the terminal's foreground."""
        try:
            return os.tcgetpgrp(self.terminal) == os.getpgrp()
        except OSError:  # it controls no session of ours
            return True

    def _stop(self) -> None:
        live, self._live, self._drawn = self._live, None, []
        if live is not None:
            with contextlib.suppress(OSError):
                live.stop()
