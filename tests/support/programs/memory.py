"""Samples the memory of a process and all its descendants, throughout."""

import contextlib
from pathlib import Path

import psutil

from tests.support.threads import Threads

_FORGET_PEAK = "5"  # proc(5), clear_refs


def forget_peaks(pid: int) -> int:
    """Begin to measure anew; give what the process and its descendants take now."""
    for process in _family(pid):
        Path(f"/proc/{process.pid}/clear_refs").write_text(_FORGET_PEAK, "ascii")
    return peaks(pid)


def peaks(pid: int) -> int:
    """Sum the highest resident memory of each, as the kernel kept it."""
    return sum(_peak(process.pid) for process in _family(pid))


def _family(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def _peak(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text("ascii", errors="replace")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) << 10


class PeakRss(Threads):
    """The largest sum of resident memory seen, in bytes, in a sample each 50 ms."""

    def __init__(self, pid: int) -> None:
        super().__init__(self._sample)
        self._root = psutil.Process(pid)
        self.peak = 0
        self.samples = 0

    def _sample(self) -> None:
        while not self.leaving.wait(0.05):
            total = 0
            with contextlib.suppress(psutil.NoSuchProcess):
                for process in (self._root, *self._root.children(recursive=True)):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        total += process.memory_info().rss
            self.peak = max(self.peak, total)
            self.samples += 1
