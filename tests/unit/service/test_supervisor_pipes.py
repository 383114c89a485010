"""A worker's pipes: what a plugin prints or starts reaches neither."""

import subprocess
import sys

_END_S = 60  # a start is some of it
_WORKER = """
import os
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from walstream.service.supervisor_pipes import SupervisorPipes
pipes = SupervisorPipes()
words = pipes.words()
pipes.write(f"order {next(words)}\\n".encode())
pipes.hide()
def obey():
    for word in words:
        pipes.write(f"word {word}\\n".encode())
thread = threading.Thread(target=obey)
thread.start()
"""
_PLUGIN = """
print("no line, ", end="")
print("a log's", file=sys.stderr)
print("a handler's")
os.write(1, b"of a library's")
assert sys.stdin.read() == ""
with ProcessPoolExecutor(1) as pool:
    pipes.write(b"pool %d\\n" % pool.submit(abs, -3).result())
thread.join()
"""


def test_what_a_plugin_prints_or_starts_reaches_no_pipe() -> None:
    """A pool's process closes sys.stdin: whoever reads that holds its lock."""
    with subprocess.Popen(
        [sys.executable, "-c", _WORKER + _PLUGIN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(b"first\nsecond\nthi")
            process.stdin.flush()
            told = {process.stdout.readline() for _ in range(3)}
            assert told == {b"order first\n", b"word second\n", b"pool 3\n"}
            process.stdin.write(b"rd\ncut")
            rest, said = process.communicate(timeout=_END_S)
        finally:
            process.kill()
        assert rest == b"word third\n"
        assert process.returncode == 0
        log, printed, other = said.splitlines()
        assert (log, printed) == (b"a log's", b"no line, a handler's")
        assert other == b"of a library's"


def test_a_worker_without_standard_error_has_its_pipes() -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, _WORKER + "print(1)"],
        input=b"first\nsecond\n",
        stdout=subprocess.PIPE,
        timeout=_END_S,
        check=True,
    )
    assert done.stdout == b"order first\nword second\n"
