"""A process that ends with the one that started it."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def ask_for_its_signal() -> None:
    """Ask Linux for SIGKILL when the parent ends; it may have ended before."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def die_with_parent(parent: int) -> None:
    """End when the parent does: no orphan goes on with its work."""
    ask_for_its_signal()
    if os.getppid() != parent:
        os._exit(1)  # it ended before we asked


_HELD: Final = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


@contextmanager
def signals_held() -> Iterator[None]:
    """Start a process within, which gets none of these before it calls `take_signals`.

    A terminal's Ctrl-C goes to the whole group: also to who still loads its modules.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def take_signals(ended: Callable[[int, FrameType | None], object]) -> None:
    """Leave a terminal's to the parent, which decides; be `ended` by SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, ended)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
