"""Waits before the next try. Pure: the caller waits, and watches for the stop."""

from walstream.telemetry import runtime


class Backoff:
    """Doubling waits with jitter, up to a maximum; `reset` after a success."""

    def __init__(self, first_s: float = 0.1, longest_s: float = 5.0) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._next_s = first_s

    def next(self) -> float:
        """Return the wait before the next try, in seconds."""
        wait_s = self._next_s
        self._next_s = min(self._longest_s, self._next_s * 2)
        return wait_s * runtime.uniform(0.75, 1.0)

    def reset(self) -> None:
        self._next_s = self._first_s
