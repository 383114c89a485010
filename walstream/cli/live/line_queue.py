"""Lines between the thread that reads them and the one that draws them.

Who reads never waits: a terminal that is stopped, by Ctrl-S say, holds up no process
that logs. What is too much meanwhile is left out, the oldest first, and counted.
"""

import threading
from collections import deque
from collections.abc import Iterable
from typing import Final

LINES: Final = 4000
BYTES: Final = 8 << 20
_AT_ONCE: Final = 100  # lines, so that the status is drawn between them


class LineQueue:
    """Keeps the last lines until they are taken."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._left_out = 0
        self._woken = False
        self._closed = False
        self._changed = threading.Condition()

    def put(self, lines: Iterable[bytes]) -> None:
        """Add lines; never waits for who takes them."""
        with self._changed:
            for line in lines:
                self._lines.append(line)
                self._bytes += len(line)
            while len(self._lines) > LINES or self._bytes > BYTES:
                self._bytes -= len(self._lines.popleft())
                self._left_out += 1
            self._changed.notify()

    def wake(self) -> None:
        """End the wait of `take`."""
        with self._changed:
            self._woken = True
            self._changed.notify()

    def close(self) -> None:
        """Note that no more come."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def take(self, timeout_s: float) -> list[bytes] | None:
        """Return the next lines, perhaps none; None: all were taken, it is over.

        Waits for one, for `wake`, or for the time.
        """
        with self._changed:
            self._changed.wait_for(self._has_news, timeout_s)
            self._woken = False
            if not self._lines and not self._left_out:
                return None if self._closed else []
            taken = [self._note()] if self._left_out else []
            while self._lines and len(taken) < _AT_ONCE:
                line = self._lines.popleft()
                self._bytes -= len(line)
                taken.append(line)
            return taken

    def _has_news(self) -> bool:
        return bool(self._lines or self._left_out or self._woken or self._closed)

    def _note(self) -> bytes:
        number, self._left_out = self._left_out, 0
        lines = "1 line" if number == 1 else f"{number:,} lines"
        return f"… {lines} left out: the terminal was stopped, or too slow".encode()
