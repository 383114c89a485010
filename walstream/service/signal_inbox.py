"""The signals that came to the supervisor, and the pipe by which they wake its loop."""

import contextlib
import os
import selectors
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_STDERR: Final = 2


class SignalInbox:
    """Counts what comes; whoever owns the loop asks for it at each turn."""

    def __init__(
        self, selector: selectors.BaseSelector, terminal: int = _STDERR
    ) -> None:
        """`terminal` is the descriptor of one, or of a standard error that is none."""
        self.stops = 0  # SIGTERM and SIGINT, since the start
        self._hangup = False  # SIGHUP came
        self._terminal = terminal
        self._had_terminal = os.isatty(terminal)
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        selector.register(
            self._out, selectors.EVENT_READ, lambda: os.read(self._out, 4096)
        )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Take the signals, until the end."""
        before = {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Count and wake: a handler may run between any two steps of the loop."""
        if number == signal.SIGHUP and os.isatty(self._terminal) == self._had_terminal:
            self._hangup = True
        else:  # a terminal that is closed is gone by then
            self.stops += 1
        self.wake()

    def wake(self) -> None:
        """Make the loop turn at once; from any thread."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._in, b"\0")

    def take_hangup(self) -> bool:
        """Return whether SIGHUP came since this was asked last."""
        if not self._hangup:  # one that comes behind this is of the next time
            return False
        self._hangup = False
        return True
