"""The time that Kafka takes to answer: the least of the last seconds.

The least, since others waited for the loop, for a batch, or for the rest of a large
transaction. The loop rests for longer where Kafka is far, so that it hears of each
answer later: each second it is measured again, by a transaction during which the loop
did not.
"""

from typing import Final

_NEVER: Final = float("inf")
_WINDOW_S: Final = 1.0
_UNSENT_S: Final = 0.0001  # within that nothing was asked: no op became a record


class AnswerTime:
    """Least time from a transaction's begin to its delivery, of any sink."""

    def __init__(self) -> None:
        self._seen_s = _NEVER  # the least since the last look
        self._least_s = self._least_before_s = _NEVER  # of this window and the last
        self._began = self._next = 0.0  # this window, and the next one

    def observe(self, took_s: float) -> None:
        """Note that a transaction was delivered so long after it began to come."""
        if took_s > _UNSENT_S:
            self._seen_s = min(self._seen_s, took_s)

    def least_s(self, now: float) -> float:
        """Return it; 0.0 where none was delivered that began in this window."""
        if now >= self._next:
            self._began, self._next = now, now + _WINDOW_S
            self._least_before_s, self._least_s = self._least_s, _NEVER
        seen_s, self._seen_s = self._seen_s, _NEVER
        if seen_s <= now - self._began:
            self._least_s = min(self._least_s, seen_s)
        if self._least_s == _NEVER:
            return 0.0
        return min(self._least_s, self._least_before_s)
