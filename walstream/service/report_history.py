"""Reports of a worker's processes, one after the other, with times: no clock.

A time is monotonic, and the caller's.
"""

from dataclasses import replace
from typing import Final

from walstream.service.stall import HANGS_S, StallWatch
from walstream.service.worker_counts import WorkerCounts
from walstream.sources.report import ErrorReport, WorkerReport, decode
from walstream.status.snapshot import SILENT_S
from walstream.telemetry.counts import ProcessCounts

_FLOWS: Final = frozenset({"streaming", "polling", "backfilling"})
_FIRST_WORD_S: Final = 120.0


class ReportHistory:
    """Reports of the process that runs, and what lasts of those before it."""

    def __init__(self) -> None:
        self.report: WorkerReport | None = None  # the last one; None: there is none
        self.error: ErrorReport | None = None  # of the process that ended last
        self.started_at = 0.0
        self.heard_at = 0.0
        self._last = WorkerReport()  # of processes that ended
        self._counts = WorkerCounts()
        self._stalls = StallWatch()

    def begin(self, now: float) -> None:
        """Note that a process was started."""
        self.started_at = now
        self._stalls = StallWatch()

    def hear(self, line: bytes, now: float) -> None:
        """Take in a report; raise ValueError where it is none: the last one stays."""
        self.report, counts = decode(line)
        self.heard_at = now
        self._counts.hear(counts)

    def end(self) -> None:
        """Keep what lasts: the process has ended, and its last words were heard."""
        self._counts.end()
        report, self.report = self.report, None  # the state folder knows how it ended
        self.error = report.error if report else None
        if report is not None:
            self._last = replace(report, source=report.source or self._last.source)

    @property
    def counts(self) -> ProcessCounts:
        """What all of them counted; it never falls."""
        return self._counts.sum

    @property
    def has_spoken(self) -> bool:
        """Return whether the process that was started last has said something yet."""
        return self.heard_at >= self.started_at

    @property
    def flows(self) -> bool:
        """Return whether it streams, or did: a state that passed is in no report."""
        report = self.report
        return report is not None and (report.flowed or report.state in _FLOWS)

    @property
    def sink_is_refused(self) -> bool:
        """Return whether a sink of its waits whose client is refused as who it is."""
        if self.report is None:
            return False
        outages = [sink.outage for sink in self.report.sinks.values()]
        return any(outage and outage.refused for outage in outages)

    def is_silent(self, now: float) -> bool:
        """Return whether its reports have stopped.

        While many start at once, the first report takes longer: that is not counted.
        """
        return self.has_spoken and now - self.heard_at > SILENT_S

    def hangs(self, now: float) -> bool:
        """Return whether it says nothing, or its loop does not turn.

        A server that is away, or a source without changes, lets both go on.
        """
        if not self.has_spoken:
            return now - self.started_at > _FIRST_WORD_S
        return self.is_silent(now) or self._turn_s >= HANGS_S

    def idle_s(self, now: float) -> float:
        """Return since when it has neither spoken nor turned its loop, in seconds."""
        return now - max(self.started_at, self.heard_at - self._turn_s)

    @property
    def _turn_s(self) -> float:
        """How long the last turn of its loop took when it told, while it streams."""
        if self.report is None or self.report.state != "streaming":
            return 0.0
        return (self.report.stream and self.report.stream.turn_s) or 0.0

    def stalls(self, now: float) -> tuple[str, ...]:
        """Return what of it gets nowhere, in words."""
        # what another process said before it is not how it is
        current = self.report if self.has_spoken else None
        return tuple(self._stalls.look(now, current or WorkerReport()))

    def known(self) -> WorkerReport:
        """Return the last report, completed by what lasts of those before."""
        report, last = self.report, self._last
        source = last.source.lasting if last.source else None
        if report is None:
            return WorkerReport(error=last.error, source=source)
        return replace(report, source=report.source or source)
