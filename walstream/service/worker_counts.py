"""Counters over all processes of a worker: they never fall."""

from walstream.telemetry.counts import ProcessCounts


class WorkerCounts:
    """Sum of what the process that runs counted, and of those before it."""

    def __init__(self) -> None:
        self._before = ProcessCounts()
        self._current = ProcessCounts()  # as last heard
        self._sum: ProcessCounts | None = None  # of both; None: not added up yet

    def hear(self, counts: ProcessCounts) -> None:
        """Take in what the process that runs counted until now."""
        self._current, self._sum = counts, None

    @property
    def sum(self) -> ProcessCounts:
        """Return the sums, those of the process that runs included."""
        if self._sum is None:  # adding up takes longer than all else of a turn
            self._sum = self._before + self._current
        return self._sum

    def end(self) -> None:
        """Keep what the process counted: it has ended."""
        self._before = self._sum = self.sum
        self._current = ProcessCounts()
