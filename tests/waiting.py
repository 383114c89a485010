"""Waiting for a condition, never for luck."""

import time
from collections.abc import Callable

_POLL_INTERVAL_S = 0.02


def wait_until(predicate: Callable[[], object], timeout_s: float, what: str) -> None:
    """Return as soon as it holds; fail when it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not predicate():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(_POLL_INTERVAL_S)
