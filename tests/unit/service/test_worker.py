"""What a worker tells its supervisor. What it does is shown by tests/fault."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from walstream.config import Config
from walstream.config.run_options import Options
from walstream.pipeline.shutdown import Stop, Waker
from walstream.service import worker
from walstream.sources.report import RelayReport
from walstream.telemetry.counts import SourceCounts

_PUSH = """
import threading
from walstream.service import worker
from walstream.sources.report import PollReport, TableReport, WorkerReport
from walstream.telemetry import logs
from walstream.telemetry.counts import ProcessCounts
logs.configure("info", str)
class Worker(worker.Worker):
    phase, answers, _mute, reports = "polling", {}, False, 0
    def __init__(self):
        pass
    def report(self):
        self.reports += 1
        if self.reports <= %d:
            raise RuntimeError("something changed meanwhile")
        tables = {str(number): TableReport(error="x" * 100) for number in range(3000)}
        return WorkerReport(source=PollReport(tables=tables)), ProcessCounts()
worker._REPORT_EVERY_S = 0.1
worker._push(Worker(), threading.Event(), threading.Event())
"""


@contextmanager
def pushing(failures: int) -> Iterator[IO[bytes]]:
    """Run a worker whose first reports fail."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PUSH % failures],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        yield process.stdout
    finally:
        process.kill()
        process.communicate()


def test_a_state_larger_than_a_pipe_arrives_whole() -> None:
    with pushing(failures=0) as stdout:
        for _ in range(2):
            told = json.loads(stdout.readline())
            assert len(told["tables"]) == 3000


def test_a_report_that_fails_is_not_the_last() -> None:
    with pushing(failures=2) as stdout:
        assert json.loads(stdout.readline())


class Part:
    """One that cannot be asked once its positions are closed."""

    flowed = True
    closed = False
    phase = ""

    def report(self) -> RelayReport:
        if self.closed:
            raise RuntimeError("the state is not open")
        return RelayReport(ops=3)

    def counts(self) -> SourceCounts:
        return SourceCounts(poisoned=2)


def test_a_part_that_is_over_is_asked_no_more() -> None:
    made = worker.Worker(Config(), "app", Options(), Stop(Waker(), 1.0))
    part = Part()
    made._part = part  # type: ignore[assignment]  # noqa: SLF001
    made._end_part()  # noqa: SLF001
    part.closed = True
    report, counts = made.report()
    assert report.source == RelayReport(ops=3)
    assert counts.metrics.poisoned == 2
