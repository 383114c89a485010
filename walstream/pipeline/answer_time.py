"""The time that Kafka takes to answer: the least of the last seconds.

The least, since others waited for the loop, for a batch, or for the rest of a large
transaction.
"""

from typing import Final

_NEVER: Final = float("inf")
_WINDOW_S: Final = 1.0


class AnswerTime:
    """Least time from a transaction's begin to its delivery, of any sink."""

    def __init__(self) -> None:
        self._least_s = self._least_before_s = _NEVER  # of this window and the last
        self._next = 0.0

    def observe(self, took_s: float) -> None:
        """Note that a transaction was delivered so long after it began to come."""
        self._least_s = min(self._least_s, took_s)

    def least_s(self, now: float) -> float:
        """Return it; 0.0 where nothing was delivered in the last windows."""
        if now >= self._next:
            self._next = now + _WINDOW_S
            self._least_before_s, self._least_s = self._least_s, _NEVER
        least_s = min(self._least_s, self._least_before_s)
        return 0.0 if least_s == _NEVER else least_s
