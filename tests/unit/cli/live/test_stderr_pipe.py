"""Standard error, taken over and given back: in a process of its own."""

import subprocess
import sys

_TAKE = """
import os, subprocess, sys
from walstream.cli.live.stderr_pipe import StderrPipe
pipe = StderrPipe()
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _TAKE + code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )


def test_what_this_process_and_its_children_write_comes_out_by_lines() -> None:
    done = run("""
print("own", file=sys.stderr)
subprocess.run([sys.executable, "-c", "import os; os.write(2, b'child\\\\nleft')"])
got = list(pipe.lines(5))
print("over", file=sys.stderr)
got += list(pipe.lines(5))
print(got)
""")
    assert done.stdout == "[b'own', b'child', b'leftover']\n"
    assert done.stderr == ""


def test_what_was_written_before_it_is_given_back_is_not_lost() -> None:
    done = run("""
print("before", file=sys.stderr); os.write(2, b"rest")
pipe.restore()
print("behind", file=sys.stderr)
got = []
while (lines := pipe.lines(5)) is not None:
    got += lines
pipe.close()
print(got)
""")
    assert done.stdout == "[b'before', b'rest']\n"
    assert done.stderr == "behind\n"


def test_a_line_without_an_end_does_not_fill_the_memory() -> None:
    done = run("""
import threading
threading.Thread(target=lambda: os.write(2, b"x" * (3 << 20)), daemon=True).start()
longest = 0
while longest < 1 << 20:
    longest = max([longest, *(len(line) for line in pipe.lines(5))])
print(longest < 2 << 20)
os._exit(0) if sys.stdout.flush() is None else None
""")
    assert done.stdout == "True\n"


def test_a_wait_ends_when_it_is_woken() -> None:
    done = run("""
import time
pipe.wake(); began = time.monotonic()
print(list(pipe.lines(60)), time.monotonic() - began < 30)
""")
    assert done.stdout == "[] True\n"
