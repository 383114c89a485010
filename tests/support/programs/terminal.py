"""A program that has a terminal: what it would ask a person, it may ask there."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_TAKE = """\
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # what opens /dev/tty finds this one
"""


@dataclass(frozen=True)
class Ended:
    """What it ended with, all that it printed, and what stood on its terminal."""

    code: int
    text: str
    shown: str


def run_on_terminal(code: str, *arguments: object, deadline_s: float = 30) -> Ended:
    """Run Python that prints, with a terminal that nobody types at."""
    master, slave = os.openpty()
    try:
        child = subprocess.Popen(
            [sys.executable, "-c", _TAKE + code, *map(str, arguments)],
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd=Path(__file__).parents[3],
            text=True,
        )
        try:
            text, _ = child.communicate(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            child.kill()
            text, _ = child.communicate()
        os.set_blocking(master, False)
        try:
            shown = os.read(master, 1 << 16).decode()
        except BlockingIOError:
            shown = ""
        return Ended(child.returncode, text, shown)
    finally:
        os.close(slave)
        os.close(master)
