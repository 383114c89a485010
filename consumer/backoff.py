"""How long to wait before the next try. Pure: whoever waits listens to the stop too."""

import random
from typing import Final

_LEAST: Final = 0.75  # of a wait: others that failed at the same moment spread


class Backoff:
    """Doubling waits up to a longest; a success resets."""

    def __init__(self, first_s: float = 0.1, longest_s: float = 30.0) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._next_s = first_s

    def next(self) -> float:
        """Give the wait before the next try, in seconds."""
        wait_s = self._next_s
        self._next_s = min(self._longest_s, wait_s * 2)
        return wait_s * random.uniform(_LEAST, 1.0)  # noqa: S311 - no secret

    def reset(self) -> None:
        self._next_s = self._first_s
