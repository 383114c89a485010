"""The stop request, and what wakes the loop for it."""

import contextlib
import os

from walstream.telemetry import runtime


class Waker:
    """Ends the loop's waiting from another thread or a signal handler."""

    def __init__(self) -> None:
        self._out, self._in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        return self._out

    def wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._in, b"\0")

    def rest(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._out, 4096)


class Stop:
    """Stop request: set by signals or the control pipe, watched by all that waits."""

    def __init__(self, waker: Waker, timeout_s: float) -> None:
        self.event = runtime.event()
        self.waker = waker
        self._timeout_s = timeout_s
        self._deadline = float("inf")

    @property
    def requested(self) -> bool:
        return self.event.is_set()

    @property
    def deadline(self) -> float:
        """End of the drain on the monotonic clock; never before it is requested."""
        return self._deadline

    @property
    def expired(self) -> bool:
        return runtime.monotonic() >= self._deadline

    def request(self) -> None:
        """Request the stop. Calling it again changes nothing."""
        if not self.event.is_set():
            self._deadline = runtime.monotonic() + self._timeout_s
            self.event.set()
            self.waker.wake()
