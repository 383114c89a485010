"""Priorities for systemd's journal: what `journalctl -p err` selects by.

It reads a line's priority from a number before it (sd-daemon(3)), and takes that off.
"""

import contextlib
import os
import sys
from typing import Final

_PRIORITIES: Final = {
    "critical": 2,
    "error": 3,
    "warning": 4,
    "info": 6,
    "debug": 7,
}


def is_stderr() -> bool:
    """Return whether standard error is the journal itself.

    The variable alone does not say so: whoever started us may have replaced the stream
    and left it in the environment.
    """
    told = os.environ.get("JOURNAL_STREAM")
    if told:
        with contextlib.suppress(OSError, ValueError):
            found = os.fstat(sys.stderr.fileno())
            return told == f"{found.st_dev}:{found.st_ino}"
    return False


def marked(text: str, level: str) -> str:
    """Write the priority before each line: the journal takes each for an entry."""
    number = _PRIORITIES.get(level, _PRIORITIES["info"])
    return "\n".join(f"<{number}>{line}" if line else "" for line in text.split("\n"))
