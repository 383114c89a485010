"""What a worker hears of its supervisor, and tells it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_END_S = 60  # a start is some of it
_WORKER = """
import sys
import threading
from walstream.pipeline.shutdown import Stop, Waker
from walstream.service import worker_threads
from walstream.service.supervisor_pipes import SupervisorPipes
from walstream.telemetry import logs
logs.configure("info", str)
class Worker:
    phase, answers, lines, stopped_code = "polling", {}, 0, 5
    def line(self):
        self.lines += 1
        if self.lines == 1:
            return b""
        return b"x" * 300_000 + b"\\n"
    def backfill(self, request):
        print("backfill", *request.tables, flush=True)
    def poll(self, request):
        print("poll", request.number, flush=True)
worker_threads._REPORT_EVERY_S = 0.1
worker_threads._LATE_S = 0.1
over, told = threading.Event(), threading.Event()
pipes = SupervisorPipes()
"""
_PUSH = "worker_threads.push(Worker(), pipes, over, told)"
_LAST = """
threading.Timer(0.3, over.set).start()
worker_threads._REPORT_EVERY_S = 3600.0
worker_threads.push(Worker(), pipes, over, told)
print(told.is_set())
"""
_OBEY = """
stop = Stop(Waker(), 60.0)
def tell():
    stop.event.wait()
    print("stops", flush=True)
threading.Thread(target=tell).start()
worker_threads.obey(Worker(), stop, pipes.words())
"""
_END = """
stop = Stop(Waker(), 0.1)
stop.request()
worker_threads.end_in_time(stop, 5)
"""


@contextmanager
def running(code: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run it in a process of its own: it reads and writes that one's pipes."""
    process = subprocess.Popen(
        [sys.executable, "-c", _WORKER + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def write(process: subprocess.Popen[bytes], *lines: str) -> None:
    assert process.stdin is not None
    for line in lines:
        process.stdin.write(line.encode() + b"\n")
    process.stdin.flush()


def test_a_report_larger_than_a_pipe_arrives_whole_and_one_that_fails_is_left_out() -> (
    None
):
    with running(_PUSH) as process:
        for _ in range(2):
            assert read(process) == b"x" * 300_000 + b"\n"


def test_who_is_over_says_a_last_word_at_once() -> None:
    with running(_LAST) as process:
        assert read(process) == b"x" * 300_000 + b"\n"
        assert read(process) == b"True\n"
        assert process.wait(_END_S) == 0


def test_words_are_obeyed_and_an_unknown_one_is_passed_over() -> None:
    with running(_OBEY) as process:
        write(process, "later", 'backfill {"number":1,"tables":["a.b","c"]}')
        assert read(process) == b"backfill a.b c\n"
        write(process, 'poll {"number":2}')
        assert read(process) == b"poll 2\n"
        write(process, "stop")
        assert read(process) == b"stops\n"
        write(process, "now")
        assert process.wait(_END_S) == 5  # as this worker says


def test_the_end_of_the_supervisor_is_the_workers() -> None:
    with running(_OBEY) as process:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
        assert process.wait(_END_S) == 1


def test_a_drain_that_takes_too_long_is_ended_with_a_word() -> None:
    with running(_END) as process:
        _, said = process.communicate(timeout=_END_S)
        assert process.returncode == 5
        assert b"stopped before everything was delivered" in said
