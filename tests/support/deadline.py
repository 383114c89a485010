"""Waiting for a condition, never for luck."""

import time
from collections.abc import Callable

_POLL_INTERVAL_S = 0.02
_LEAST_S = 30.0  # a machine may be slow, and a wait that ends well costs nothing


def wait_until(predicate: Callable[[], object], timeout_s: float, what: str) -> None:
    """Return as soon as it holds; fail when it does not in time, or half a minute."""
    timeout_s = max(timeout_s, _LEAST_S)
    if not within(predicate, timeout_s):
        raise AssertionError(f"not within {timeout_s} s: {what}")


def within(predicate: Callable[[], object], timeout_s: float) -> bool:
    """Tell whether it comes to hold in time, where so short a time is the claim."""
    deadline = time.monotonic() + timeout_s
    while not predicate():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_INTERVAL_S)
    return True
