"""Makes a failing walk shorter: steps are left out as long as it fails alike."""

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

Step = TypeVar("Step")


def shrunk(
    steps: Sequence[Step], fails: Callable[[list[Step]], bool], budget_s: float
) -> list[Step]:
    """Leave out halves, quarters and so on down to single steps, while time is left."""
    deadline = time.monotonic() + budget_s
    left = list(steps)
    size = len(left) // 2
    while size:
        at = len(left) - size
        while at > -size:
            if time.monotonic() > deadline:
                return left
            start = max(at, 0)
            fewer = left[:start] + left[start + size :]
            if len(fewer) < len(left) and fails(fewer):
                left = fewer
            at -= size
        size //= 2
    return left
