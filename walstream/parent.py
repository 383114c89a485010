"""A process that ends with the one that started it."""

import ctypes
import os
import signal
import sys
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
