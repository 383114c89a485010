"""A process ends with the one that started it, however that ends."""

import os
import signal
import subprocess
import sys

import psutil

from tests.waiting import wait_until

_CHILD = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", '''
import sys, time
from walstream.parent import die_with_parent
die_with_parent(int(sys.argv[1]))
print("tied", flush=True)
time.sleep(60)
''', str(os.getpid())], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


def test_a_killed_parent_takes_its_child_along() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _CHILD], stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        os.kill(parent.pid, signal.SIGKILL)
        wait_until(lambda: not _lives(child), 10, "the child ends")


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
